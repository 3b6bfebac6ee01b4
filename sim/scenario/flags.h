// Which flags describe an experiment? Each writes one field of the scenario, and overrides the file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "plan/fields.h"

namespace rehearse {

enum class FlagKind { integer, number, text, on_off, layers };

// A setting of a scenario that is not a field of its plan.
struct RunField : FieldText {
  FlagKind kind;
};

struct Flag {
  std::string name;                  // "--tp"
  std::vector<std::string> aliases;  // Megatron-LM's long names
  std::string pointer;               // "/plan/tp"
  FlagKind kind;
  std::string value;  // the value's placeholder in the help: "N", "NAME|FILE"
  std::string help;
  std::string by_default = "";  // in the help's words; "": none shown
  HelpGroup group = HelpGroup::inputs;
  bool daily = false;                   // --help shows it; --help-all shows all
  std::vector<std::string> words = {};  // the legal values, where they are names
};

// Flags for the plan's fields (plan/fields.h) and for run_fields().
const std::vector<Flag>& scenario_flags();

// Inputs, conditions and engine of a run: model, cluster, placement, jitter, ...
std::vector<RunField> run_fields();

// The JSON value of the flag for this text; InputError when it is not of the flag's kind.
Json parse_value(const Flag& flag, const std::string& text);

// Whether its value may be a list of its own, or a text with commas.
bool holds_commas(const Flag& flag);

// Whether a name of a model, cluster, profile or schedule is a path.
bool is_path(const std::string& name);

// A scenario as the user gave it: the file's JSON with flags applied.
struct ScenarioSource {
  std::string file;  // "" when there is none
  Json json = Json::object();
  std::map<std::string, std::string> flag_of;  // by JSON pointer: the flag that set it
  bool large = false;                          // the run may take more than run/size.h allows
};

// The user's input.
struct GivenFlags {
  std::string file;
  std::map<std::string, std::string> values = {};  // by flag name
  std::vector<std::string> sets = {};              // "FIELD=VALUE" of --set (scenario/set_field.h)
  bool large = false;                              // --large
};

// Reads the file and applies the flags. InputError for an unreadable file, a value of the wrong kind, or a
// field that --set gives twice or in addition to a flag.
ScenarioSource collect(const GivenFlags& given);

// Applies only the flags to a scenario.
void write_flags(const GivenFlags& given, ScenarioSource& source);

}  // namespace rehearse
