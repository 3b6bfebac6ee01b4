// How is this plan started with a training framework?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "model/model.h"
#include "plan/plan.h"

namespace rehearse {

// Text of a launch line or configuration, or the reason why the framework cannot express the plan.
struct LaunchLine {
  std::string text;
  std::string why_not;  // empty when there is a text
  // Keys of the plan, in a scenario's words, that affect time or memory and that the text cannot express
  // (export/unsaid.h). A reader of the text gets the framework's default for them.
  std::vector<std::string> unsaid;
};

// Flags of Megatron-LM (v0.13's spelling) for the model's shape and the plan. Zero-bubble schedules use the
// flags of its fork sail-sg/zero-bubble-pipeline-parallelism. The user adds paths and training
// hyperparameters.
LaunchLine megatron_flags(const Model& model, const Plan& plan);

// ds_config.json, with tensor parallelism as its AutoTP and stages as its pipeline engine.
LaunchLine deepspeed_config(const Model& model, const Plan& plan);

// A torchtitan TOML file (v0.2): [training], [parallelism], [activation_checkpoint], [compile], and in fp8
// [model] and [quantize.linear.float8].
LaunchLine torchtitan_toml(const Model& model, const Plan& plan);

}  // namespace rehearse
