// What scenario do the files that start a training framework describe?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

// A configuration of another program, in our words.
struct Imported {
  Json scenario = Json::object();  // rehearse.scenario/1; without a cluster, and where `model` is null a name
  Json model;                      // a Hugging Face config.json; null where the configuration names no shape
  std::vector<std::string> notes;  // what changes the cost and is not modelled, and what was assumed
  std::int64_t accumulation = 0;   // microbatches of a step, where the configuration says those and no batch
};

// What the command line says over the file, by the scenario's pointer: "/plan/tp" is "4".
using SaidOverFile = std::map<std::string, std::string>;

// Flags of Megatron-LM (v0.13 and the names generated from its dataclasses later): one line, a file of
// arguments, the script that holds them (script_flags.h), model_config.yaml of its functional tests, or the
// arguments that a log prints. `ignored`: flags to leave out. InputError, with line and the nearest name, for
// flags that are not known, values that are none of the flag's, and flags that stand in a branch that the
// text does not decide.
Imported import_megatron(const std::string& text, const std::string& file,
                         const std::vector<std::string>& ignored, const SaidOverFile& over = {});

// ds_config.json; "auto" leaves a value to our defaults. `gpus`: 0 where not known. InputError for unknown
// keys.
Imported import_deepspeed(const JsonReader& config, int gpus);

// A torchtitan TOML file (to v0.2) for a model of `layers` layers; 0 where not known, and then its stages and
// what it recomputes by layers are noted. InputError for unknown keys of the sections that decide the cost.
Imported import_torchtitan(const std::string& text, const std::string& file, int gpus, std::int64_t layers);

}  // namespace rehearse
