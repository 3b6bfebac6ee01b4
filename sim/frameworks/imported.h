// Which scenario do the files that start a training framework describe?
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "base/omitted_effect.h"

namespace rehearse {

// Treatment of an option of the file.
enum class OptionFate : std::uint8_t { used, free, approximated, ignored, unknown };
const char* to_string(OptionFate fate);

// Effect of a key that is null, which the programs read as not given.
inline constexpr const char* kCountsDefault = "null: the default is counted";

struct ImportedOption {
  std::string name;   // as the file spells it
  std::string value;  // "" of a switch
  std::string place;  // "line 12"; "" where the file has no lines
  OptionFate fate = OptionFate::used;
  std::string effect;                   // of an approximated or ignored option: the counted behaviour
  std::string nearest;                  // of an unknown option: known names like it
  std::vector<std::string> known_as{};  // options that it sets, where the file spells it otherwise
};

// A configuration of another program, in our words.
struct Imported {
  Json scenario = Json::object();  // rehearse.scenario/1; without a cluster, and where `model` is null a name
  Json model;                      // a Hugging Face config.json; null where the configuration names no shape
  std::vector<std::string> notes;  // unsupported options that change the cost, and assumptions
  std::int64_t accumulation = 0;   // microbatches of a step, where the file states no global batch
  std::vector<ImportedOption> options;       // each of the file's own, in its order
  std::vector<OmittedEffect> omitted;        // of unsupported options, where they can decide the answer
  std::set<std::string> assumed;             // of step_values(), where the file names a value in part alone
  std::map<std::string, std::string> asked;  // keys of YAML that were read as "integer", "number" or "switch"
  std::string model_path;  // "model.model_config": of the file's keys that `model` takes over by their names
};

// Values of the command line that replace the file's, by the scenario's pointer: "/plan/tp" is "4".
using SaidOverFile = std::map<std::string, std::string>;

// Inputs of a script from the command line: variables, arguments, and files that it may read with `source`.
struct ShellInputs {
  std::map<std::string, std::string> variables;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> files;        // text by the file's name without its folder
  std::map<std::string, std::string> environment;  // of the job; assignments of the script replace it
};

// Options of the command line for the file.
struct ImportRequest {
  SaidOverFile over;
  ShellInputs shell;
  std::vector<std::string> ignored;  // options to leave out
  std::string vocabulary;            // size, where the file's tokenizer does not state it
  int gpus = 0;                      // 0 where not known
};

// Reads the options of any release of Megatron-LM. The text is one line, a file of arguments, a script
// (script_flags.h), a model_config.yaml of the functional tests, or the arguments that a log prints.
// InputError for a value that the option does not have, and for an option in a branch that the text does not
// decide. The error names the line, and the command that decides the branch. Unknown options become notes.
Imported import_megatron(const std::string& text, const std::string& file, const ImportRequest& request = {});

// Reads a ds_config.json; "auto" leaves a value to our defaults. `gpus`: 0 where not known. InputError for
// values that the key does not have. Unknown keys become notes.
Imported import_deepspeed(const JsonReader& config, int gpus, const SaidOverFile& over = {});

// Reads a torchtitan TOML file (to v0.2) for a model of `layers` layers. Where `layers` is 0 (not known),
// notes name the settings of stages and of recompute by layers. InputError for unknown keys of the sections
// that decide the cost.
Imported import_torchtitan(const std::string& text, const std::string& file, int gpus, std::int64_t layers,
                           const SaidOverFile& over = {});

// As import_torchtitan(), from the file's contents as JSON.
Imported import_torchtitan_json(const JsonReader& config, int gpus, std::int64_t layers,
                                const SaidOverFile& over);

// A key of a configuration, as JSON pointer, and the field of the scenario that holds its value as it is.
struct KeyOfField {
  const char* key;
  const char* pointer;
};
// The configuration with the command line's values in place of its own. Values derived from it follow the
// command line too.
Json with_command_line(Json config, std::span<const KeyOfField> keys, const SaidOverFile& over);

// Remembers that the option changes the answer, where its table's row states `changes`.
void omit(Imported& imported, const std::string& option, const std::string& counted,
          const std::string& changes);

// An option that a note names becomes approximated, or ignored where the note says so.
void settle_fates(Imported& imported);

}  // namespace rehearse
