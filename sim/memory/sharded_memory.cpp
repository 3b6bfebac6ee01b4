#include <algorithm>

#include "memory/memory.h"
#include "plan/fp8.h"
#include "plan/frameworks/traits.h"
#include "plan/recipe.h"
#include "plan/sharding.h"
#include "plan/units.h"

namespace rehearse {

namespace {

StateBytes divided(double parameters, const Sharding& shards, double stepped, const Plan& plan) {
  StateBytes held = state_bytes(plan);
  // FSDP's fp32 weight belongs to the optimizer. The gathered copy that is kept comes in addition.
  const bool gathers_copy = plan.zero == 3 && plan.recipe == Recipe::fsdp && shards.parameters == 1;
  held.parameter *= parameters / (gathers_copy ? shards.optimizer : shards.parameters);
  if (gathers_copy) held.parameter += parameters * parameter_bytes(plan);
  held.gradient *= parameters / shards.gradients;
  held.fresh_gradient *= parameters;
  held.bucket *= parameters;
  for (double* of_optimizer : {&held.gradient_copy, &held.master, &held.moments}) *of_optimizer *= stepped;
  return held;
}

}  // namespace

StateBytes held_state(double dense, double experts, const Plan& plan, std::optional<double> stepped) {
  const Sharding of_dense = sharding(plan), among_experts = expert_sharding(plan);
  StateBytes held = divided(dense, of_dense, stepped.value_or(dense / of_dense.optimizer), plan);
  const StateBytes of_experts = divided(experts, among_experts, experts / among_experts.optimizer, plan);
  held.parameter += of_experts.parameter;
  held.gradient += of_experts.gradient;
  held.fresh_gradient += of_experts.fresh_gradient;
  held.bucket += of_experts.bucket;
  held.gradient_copy += of_experts.gradient_copy;
  held.master += of_experts.master;
  held.moments += of_experts.moments;
  if (plan.offload != Offload::optimizer) return held;
  held.gradient_copy = held.master = held.moments = 0;
  // Reduced shards go to the host at once. Gradients that add up over microbatches stay whole until then.
  if (plan.zero >= 2 && reduces_each_microbatch(plan)) held.gradient = 0;
  return held;
}

double sharding_buffers(int pipeline_rank, const Plan& plan, const Work& work) {
  if (plan.zero < 2) return 0;
  double buffers = 0;
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage) {
    if (pipeline_rank_of(stage, plan) != pipeline_rank) continue;
    std::vector<double> sizes;
    double most_trained = 0;
    for (const Unit& unit : units(work, stage)) {
      sizes.push_back(unit.total());
      most_trained = std::max(most_trained, unit.trained());
    }
    std::sort(sizes.rbegin(), sizes.rend());
    double gathered = 0, largest = plan.bucket_bytes;
    if (plan.zero == 3) {
      const std::size_t whole =
          std::min<std::size_t>(sizes.size(), static_cast<std::size_t>(plan.prefetch) + 1);
      for (std::size_t u = 0; u < whole && plan.reshard_after_forward; ++u) gathered += sizes[u];
      largest = most_trained * gradient_wire_bytes(plan);
    }
    const double gradients = reduces_each_microbatch(plan)
                                 ? std::min(largest, work.parameters(stage) * gradient_wire_bytes(plan))
                                 : 0;
    buffers = std::max(buffers, gathered * parameter_bytes(plan) + gradients);
  }
  return buffers;
}

double cast_weights_bytes(int pipeline_rank, const Plan& plan, const Work& work) {
  if (!is_quantized(plan.precision) || traits(plan).fp8 != Fp8Library::transformer_engine) return 0;
  const bool holds_casts = plan.recipe == Recipe::fp8_weights || plan.recipe == Recipe::zero;
  if (plan.precision == Precision::fp8 && holds_casts) return 0;
  double elements = 0;
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage) {
    if (pipeline_rank_of(stage, plan) != pipeline_rank) continue;
    for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)]) {
      const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
      elements += static_cast<double>(part.repeats) * cast_elements(block, block.forward, plan.precision);
    }
  }
  if (plan.precision == Precision::fp4) return 2 * kFp4Bytes * elements;
  return (plan.fp8_either_layout && plan.fp8_scaling != Fp8Scaling::mx ? 1 : 2) * elements;
}

}  // namespace rehearse
