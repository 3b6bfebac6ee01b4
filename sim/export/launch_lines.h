// How is this plan started with a training framework?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "model/model.h"
#include "plan/plan.h"

namespace rehearse {

// Text of a launch line or configuration, or why the framework has no words for the plan.
struct LaunchLine {
  std::string text;
  std::string why_not;  // empty when there is a text
  // Keys of the plan, in a scenario's words, that decide its time or memory and for which the text has no
  // words (export/unsaid.h): read again it is a plan that has the framework's own way there.
  std::vector<std::string> unsaid;
};

// Flags of Megatron-LM (v0.13's spelling) for the model's shape and the plan; zero-bubble schedules with the
// flags of sail-sg/zero-bubble-pipeline-parallelism, which is a fork of it. Paths and training
// hyperparameters are the user's.
LaunchLine megatron_flags(const Model& model, const Plan& plan);

// ds_config.json; tensor parallelism as its AutoTP, stages as its pipeline engine.
LaunchLine deepspeed_config(const Model& model, const Plan& plan);

// [training], [parallelism], [activation_checkpoint], [compile] and in fp8 [model] and
// [quantize.linear.float8] of a torchtitan TOML file (v0.2).
LaunchLine torchtitan_toml(const Model& model, const Plan& plan);

}  // namespace rehearse
