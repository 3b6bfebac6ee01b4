// How many layers are on each stage, if a rule or a layout states it instead of a list?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace rehearse {

// InputErrors of these functions name the field of the plan in Violation::pointer.

// Layers of the first and of the last pipeline rank, over all their chunks. The other ranks share the rest
// evenly. -1: like the others. Megatron-LM: --decoder-first-pipeline-num-layers, --decoder-last-...
std::vector<int> split_with_ends(std::int64_t layers, const Plan& plan, int first_rank, int last_rank);

// Even stages where the embedding counts as a layer of the first stage, and the loss as one of the last.
// Megatron-LM: --account-for-embedding-in-pipeline-split, --account-for-loss-in-pipeline-split
std::vector<int> split_with_embedding(std::int64_t layers, const Plan& plan, bool embedding, bool loss);

// nanotron's split (models/base.py, build_model; models/llama.py, get_block_compute_costs). A stage takes
// layers until its share of the multiplications of layers and head is exceeded. An even split where the head
// would not be on the last stage.
std::vector<int> split_at_shares(const Model& model, const Plan& plan);

// Splits embedding, layers, final norm and head by parameters. The stage with most parameters has as few as
// possible, and each stage takes all that does not exceed that number. This is the split of DeepSpeed
// ("parameters") and of Aleph Alpha's Scaling (core/nn/parallel_module/pipeline_partitioning.py,
// pipe_partition_balanced). An even split where norm and head would not be on the last stage.
std::vector<int> split_by_parameters(const Model& model, const Plan& plan);

// Megatron-LM's --pipeline-model-parallel-layout, as "Et*2|(t*3|)*6,t*2mL": E embedding, t layer, m MTP
// layer, L loss, | border of stages in model order, x*n and (...)*n repetition, commas ignored. There are
// model.mtp_layers MTP layers, on the last stage, with the loss.
std::vector<int> parse_layout(const std::string& layout, const Model& model);

}  // namespace rehearse
