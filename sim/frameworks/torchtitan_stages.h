// How does torchtitan cut a model into pipeline stages?
#pragma once

#include <cstdint>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

struct TorchtitanStages {
  std::int64_t chunks = 1;           // of a pipeline rank
  std::vector<std::int64_t> layers;  // of each stage; empty where all have equally many
};

// The layers that [parallelism]'s module_fqns_per_model_part lists, stage by stage. InputError for what is no
// list of lists of names.
TorchtitanStages torchtitan_modules(const JsonReader& parallelism, std::int64_t ranks);

// Of a model of `layers` layers on `ranks` pipeline ranks: [parallelism]'s
// pipeline_parallel_layers_per_stage, or one stage a rank, two where the schedule runs `several`. The
// embedding and the head stand for as many layers as pipeline_parallel_first_stage_less_layers and
// ..._last_stage_less_layers say, one each unless told otherwise
// (torchtitan/distributed/pipeline_parallel.py, generate_llm_fqn_per_model_part). InputError where the stages
// do not go over the ranks, or one would be left without a layer's place.
TorchtitanStages torchtitan_stages(const JsonReader& parallelism, std::int64_t layers, std::int64_t ranks,
                                   bool several);

}  // namespace rehearse
