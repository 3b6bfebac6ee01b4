// How does torchtitan cut a model into pipeline stages?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

struct TorchtitanSchedule {
  std::string name;      // as PyTorch spells it
  std::string schedule;  // ours
};

// pipeline_parallel_schedule of [parallelism]. PyTorch ignores its case
// (torch/distributed/pipelining/schedules.py, get_schedule_class). InputError for another name.
TorchtitanSchedule torchtitan_schedule(const JsonReader& parallelism);

struct TorchtitanStages {
  std::int64_t chunks = 1;           // of a pipeline rank
  std::vector<std::int64_t> layers;  // of each stage; empty where all have equally many
};

// The layers that [parallelism]'s module_fqns_per_model_part lists, stage by stage. InputError for a value
// that is not a list of lists of names.
TorchtitanStages torchtitan_modules(const JsonReader& parallelism, std::int64_t ranks);

// Stages of a model of `layers` layers on `ranks` pipeline ranks. The key pipeline_parallel_layers_per_stage
// of [parallelism] states the layers of a stage. Without it, a rank has one stage, or two where the schedule
// runs `several`. The embedding counts as pipeline_parallel_first_stage_less_layers layers, and the head as
// ..._last_stage_less_layers. Both are 1 by default (torchtitan/distributed/pipeline_parallel.py,
// generate_llm_fqn_per_model_part). InputError where the ranks do not divide the stages, or a stage would be
// left without a layer's place.
TorchtitanStages torchtitan_stages(const JsonReader& parallelism, std::int64_t layers, std::int64_t ranks,
                                   bool several);

}  // namespace rehearse
