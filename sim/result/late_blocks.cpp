#include <algorithm>

#include "plan/framework.h"
#include "result/memory.h"

namespace rehearse {

namespace {

struct Largest {
  double parameter = 0;   // elements
  double activation = 0;  // bytes
};

Largest largest_tensors(int pipeline_rank, const Plan& plan, const Work& work) {
  Largest most;
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage) {
    if (pipeline_rank_of(stage, plan) != pipeline_rank) continue;
    for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)]) {
      for (const Tensor& tensor : work.blocks[static_cast<std::size_t>(part.block)].tensors) {
        const bool trained = tensor.role == TensorRole::parameter || tensor.role == TensorRole::tied;
        if (trained) most.parameter = std::max(most.parameter, tensor.elements);
        if (tensor.role == TensorRole::activation)
          most.activation = std::max(most.activation, tensor.bytes());
      }
    }
  }
  return most;
}

bool flattens_buckets(const Plan& plan) {
  return plan.zero == 1 && plan.dp * plan.cp > 1 && plan.recipe != Recipe::deepspeed_bf16 &&
         (plan.framework == Framework::megatron_2021 || plan.framework == Framework::deepspeed ||
          plan.framework == Framework::deepspeed_2021);
}

}  // namespace

double late_block_bytes(const RankMemory& memory, const Plan& plan, const Work& work) {
  const Largest most = largest_tensors(memory.rank, plan, work);
  double block = 0;
  if (plan.recipe == Recipe::deepspeed_bf16) block = most.parameter * state_bytes(plan).gradient;
  if (flattens_buckets(plan))
    block = std::min(kDeepSpeedBucketElements, memory.parameters) * state_bytes(plan).gradient;
  return block > most.activation ? block : 0;
}

}  // namespace rehearse
