#include "memory/late_blocks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plan/frameworks/traits.h"
#include "plan/recipe.h"

namespace rehearse {

namespace {

constexpr double kFp32 = 4;

// Calls visit(elements, repeats) for each parameter of each part of a pipeline rank.
template <typename Visit>
void parameters_on(int pipeline_rank, const Plan& plan, const Work& work, Visit visit) {
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage) {
    if (pipeline_rank_of(stage, plan) != pipeline_rank) continue;
    for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)])
      for (const Tensor& tensor : work.blocks[static_cast<std::size_t>(part.block)].tensors)
        if (tensor.role == TensorRole::parameter || tensor.role == TensorRole::tied)
          visit(tensor.elements, static_cast<std::size_t>(part.repeats));
  }
}

double largest_parameter(int pipeline_rank, const Plan& plan, const Work& work) {
  double most = 0;
  parameters_on(pipeline_rank, plan, work,
                [&](double elements, std::size_t) { most = std::max(most, elements); });
  return most;
}

LateBlocks of_local_ddp(const RankMemory& memory, const Plan& plan, const Work& work) {
  const double bytes = state_bytes(plan).gradient;
  LateBlocks blocks;
  if (gradients_come_anew(plan))
    parameters_on(memory.rank, plan, work, [&](double elements, std::size_t repeats) {
      blocks.insert(blocks.end(), repeats, elements * bytes);
    });
  blocks.push_back(memory.parameters * bytes);
  return blocks;
}

bool is_deepspeed_zero_1(const Plan& plan) {
  return plan.zero == 1 && plan.recipe != Recipe::deepspeed_bf16 &&
         traits(plan).late_state == LateState::of_deepspeed;
}

std::vector<LateBlocks> of_deepspeed_zero_1(const RankMemory& memory, const Plan& plan, const Work& work) {
  const StateBytes state = state_bytes(plan);
  const double share = memory.parameters / (plan.dp * plan.cp);
  const double gathers = std::max(1.0, std::floor(memory.parameters / kDeepSpeedBucketElements));
  std::vector<LateBlocks> blocks;
  blocks.push_back({std::min(kDeepSpeedBucketElements, memory.parameters) * state.gradient});
  if (plan.precision == Precision::fp16)
    blocks.push_back({std::min(share, largest_parameter(memory.rank, plan, work)) * kFp32});
  blocks.push_back({share * state.gradient});
  blocks.push_back({memory.parameters / gathers * state.parameter});
  return blocks;
}

LateBlocks of_nanotron_zero_1(const RankMemory& memory, const Plan& plan) {
  const int ranks = plan.dp * plan.cp;
  const double whole = memory.parameters * state_bytes(plan).parameter;
  LateBlocks blocks(static_cast<std::size_t>(ranks) + 1, whole / ranks);
  blocks.push_back(whole);
  return blocks;
}

}  // namespace

std::vector<LateBlocks> late_blocks(const RankMemory& memory, const Plan& plan, const Work& work) {
  const bool has_replicas = plan.dp * plan.cp > 1;
  if (plan.recipe == Recipe::deepspeed_bf16) {
    const double largest = largest_parameter(memory.rank, plan, work);
    std::vector<LateBlocks> blocks = {{largest * kFp32}};
    const double bucket = std::max(largest, std::min(kDeepSpeedBucketElements, memory.parameters));
    if (has_replicas) blocks.push_back({bucket * kFp32});
    return blocks;
  }
  if (has_local_ddp(plan)) return {of_local_ddp(memory, plan, work)};
  if (!has_replicas) return {};
  if (is_deepspeed_zero_1(plan)) return of_deepspeed_zero_1(memory, plan, work);
  if (traits(plan).late_state == LateState::of_nanotron && plan.zero == 1)
    return {of_nanotron_zero_1(memory, plan)};
  return {};
}

double most_late_bytes(const RankMemory& memory, const Plan& plan, const Work& work) {
  double most = 0;
  for (const LateBlocks& together : late_blocks(memory, plan, work))
    most = std::max(most, std::accumulate(together.begin(), together.end(), 0.0));
  return most;
}

}  // namespace rehearse
