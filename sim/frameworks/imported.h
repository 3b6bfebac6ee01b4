// What scenario do the files that start a training framework describe?
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

// What became of an option of the file.
enum class OptionFate : std::uint8_t { used, free, approximated, ignored, unknown };
const char* to_string(OptionFate fate);

struct ImportedOption {
  std::string name;   // as the file spells it
  std::string value;  // "" of a switch
  std::string place;  // "line 12"; "" where the file has no lines
  OptionFate fate = OptionFate::used;
  std::string effect;      // of what is approximated or ignored: what is counted in its place
  std::string nearest;     // of an unknown option: known names like it
  std::string known_as{};  // the option that the file spells otherwise, as notes name it
};

// A configuration of another program, in our words.
struct Imported {
  Json scenario = Json::object();  // rehearse.scenario/1; without a cluster, and where `model` is null a name
  Json model;                      // a Hugging Face config.json; null where the configuration names no shape
  std::vector<std::string> notes;  // what changes the cost and is not modelled, and what was assumed
  std::int64_t accumulation = 0;   // microbatches of a step, where the configuration says those and no batch
  std::vector<ImportedOption> options;  // each of the file's own, in its order
};

// What the command line says over the file, by the scenario's pointer: "/plan/tp" is "4".
using SaidOverFile = std::map<std::string, std::string>;

// What the command line gives a script: variables, arguments, and files that it may read with `source`.
struct ShellInputs {
  std::map<std::string, std::string> variables;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> files;  // text by the file's name without its folder
  std::map<std::string, std::string>
      environment;  // of the job, to which assignments of the script do not give way
};

// What the command line says of the file.
struct ImportRequest {
  SaidOverFile over;
  ShellInputs shell;
  std::vector<std::string> ignored;  // options to leave out
  std::string vocabulary;            // size, where the file's tokenizer does not state it
  int gpus = 0;                      // 0 where not known
};

// Options of Megatron-LM in any release: one line, a file of arguments, the script that holds them
// (script_flags.h), model_config.yaml of its functional tests, or the arguments that a log prints.
// InputError, with line and what decides it, for values that are none of the option's, and options that stand
// in a branch that the text does not decide. Unknown options are notes.
Imported import_megatron(const std::string& text, const std::string& file, const ImportRequest& request = {});

// ds_config.json; "auto" leaves a value to our defaults. `gpus`: 0 where not known. InputError for values
// that are none of the key's. Unknown keys are notes.
Imported import_deepspeed(const JsonReader& config, int gpus, const SaidOverFile& over = {});

// A torchtitan TOML file (to v0.2) for a model of `layers` layers; 0 where not known, and then its stages and
// what it recomputes by layers are noted. InputError for unknown keys of the sections that decide the cost.
Imported import_torchtitan(const std::string& text, const std::string& file, int gpus, std::int64_t layers,
                           const SaidOverFile& over = {});

// The same of a file's contents as JSON.
Imported import_torchtitan_json(const JsonReader& config, int gpus, std::int64_t layers,
                                const SaidOverFile& over);

// A key of a configuration, as JSON pointer, and the field of the scenario that holds its value as it is.
struct KeyOfField {
  const char* key;
  const char* pointer;
};
// The configuration as if it said what the command line says: what follows from a value follows from that
// too.
Json with_command_line(Json config, std::span<const KeyOfField> keys, const SaidOverFile& over);

// One option that notes name is approximated or ignored as they say.
void settle_fates(Imported& imported);

}  // namespace rehearse
