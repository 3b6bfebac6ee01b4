// Which options does Megatron-DeepSpeed read otherwise than Megatron-LM? It runs the model in DeepSpeed's
// engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "frameworks/megatron_flags.h"

namespace rehearse {

// Whether DeepSpeed's engine holds the model.
bool has_deepspeed_engine(const MegatronFlags& flags);

// Whether the options are those of Megatron-DeepSpeed, with or without its engine.
bool is_megatron_deepspeed(const MegatronFlags& flags);

// Engine, sequence parallelism and experts of the plan.
void add_megatron_deepspeed(const MegatronFlags& flags, Json& plan, std::vector<std::string>& notes);

// Whether the script writes the ds_config.json, or the user names it.
bool has_engine_file(const MegatronFlags& flags);

// Settings of the ds_config.json that the script writes or the user names; the result lists them.
std::vector<ImportedOption> add_engine_file(const MegatronFlags& flags, Json& plan, Imported& imported);

// Experts of the written-out model; `width`: of the MLP of a layer without experts.
void add_experts_of_deepspeed(const MegatronFlags& flags, std::int64_t width, Json& config,
                              std::vector<std::string>& notes);

}  // namespace rehearse
