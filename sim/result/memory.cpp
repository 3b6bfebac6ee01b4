#include "result/memory.h"

#include <algorithm>
#include <set>

namespace rehearse {

namespace {

// What the loss keeps of the head's output for its backward pass: logits, or their softmax in place of them.
double logits_bytes(const Block& block) {
  std::set<TensorId> of_loss;
  for (const Kernel& kernel : block.forward) {
    const auto* pointwise = std::get_if<Pointwise>(&kernel.what);
    if (!pointwise || *pointwise != Pointwise::cross_entropy) continue;
    of_loss.insert(kernel.reads.begin(), kernel.reads.end());
    of_loss.insert(kernel.writes.begin(), kernel.writes.end());
  }
  double bytes = 0;
  for (const TensorId id : block.saved) {
    const Tensor& tensor = block.tensors[static_cast<std::size_t>(id)];
    if (of_loss.count(id) && tensor.role == TensorRole::activation) bytes += tensor.bytes();
  }
  return bytes;
}

// What `recompute` makes anew for the backward kernels to read.
double recomputed_bytes(const Block& block) {
  std::set<TensorId> made;
  for (const Kernel& kernel : block.recompute) made.insert(kernel.writes.begin(), kernel.writes.end());
  std::set<TensorId> wanted;
  for (const auto* kernels : {&block.backward_input, &block.backward_weight}) {
    for (const Kernel& kernel : *kernels) {
      for (const TensorId id : kernel.reads) {
        if (made.contains(id)) wanted.insert(id);
      }
    }
  }
  return block.bytes({wanted.begin(), wanted.end()});
}

bool begins_forward(const Op& op) {
  return op.kind == OpKind::forward && op.part == 0;
}

bool is_backward(const Op& op) {
  return op.kind == OpKind::backward || op.kind == OpKind::backward_input ||
         op.kind == OpKind::backward_weight;
}

bool ends_backward(const Op& op) {
  return (op.kind == OpKind::backward || op.kind == OpKind::backward_weight) && op.part + 1 == op.parts;
}

// Calls at(op index, live bytes, logits among them, op has ended) after each change.
template <typename At>
void replay(const RankOps& ops, const std::vector<StageActivations>& stages, At at) {
  double live = 0, logits = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (op.stage >= stages.size()) continue;
    const StageActivations& stage = stages[op.stage];
    if (op.kind == OpKind::reload) at(i, live += stage.saved, logits, false);
    if (!is_compute(op.kind)) continue;
    // The copy at the host counts from the first op that waits for it.
    for (const std::int32_t wait : ops.waits(op)) {
      const auto copy = static_cast<std::size_t>(wait);
      if (ops[copy].kind == OpKind::offload) at(copy, live -= stages[ops[copy].stage].saved, logits, true);
    }
    if (begins_forward(op)) {
      live += stage.saved + stage.logits;
      logits += stage.logits;
    }
    const bool first = op.part == 0;
    if (begins_forward(op) || (is_backward(op) && first && stage.recomputed > 0))
      at(i, live + (is_backward(op) ? stage.recomputed : 0), logits, false);
    if (ends_backward(op)) {
      live -= stage.saved + stage.logits;
      logits -= stage.logits;
      at(i, live, logits, true);
    }
  }
}

}  // namespace

StateBytes state_bytes(const Plan& plan) {
  if (plan.precision == Precision::fp32) return {4, 4, 8};
  return {2, static_cast<double>(plan.gradient_bytes), 12};
}

std::vector<StageActivations> stage_activations(const Work& work) {
  std::vector<StageActivations> stages(work.parts.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const Repeated& part : work.parts[s]) {
      const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
      const double logits = logits_bytes(block);
      stages[s].logits += static_cast<double>(part.repeats) * logits;
      stages[s].recomputed = std::max(stages[s].recomputed, recomputed_bytes(block));
    }
    stages[s].saved = work.saved_bytes(static_cast<int>(s)) - stages[s].logits;
  }
  return stages;
}

std::vector<RankMemory> rank_memory(const Schedule& schedule, const Plan& plan, const Work& work) {
  const std::vector<StageActivations> stages = stage_activations(work);
  std::vector<RankMemory> ranks;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    RankMemory memory;
    memory.rank = memory.stage = static_cast<int>(r);
    double parameters = 0;
    for (int s = 0; s < static_cast<int>(stages.size()); ++s)
      if (pipeline_rank_of(s, plan) == memory.rank) parameters += work.parameters(s);
    const StateBytes state = held_state(parameters, plan);
    memory.parameters_bytes = state.parameter;
    // Buckets of the gradient all-reduce are slices of this one buffer, reduced in place.
    memory.gradients_bytes = state.gradient;
    memory.optimizer_bytes = state.optimizer;
    // One message each way may be on the wire while the tensors of the running ops stand beside it.
    memory.buffers_bytes =
        (schedule.pp > 1 ? 2 * work.boundary_bytes : 0) + sharding_buffers(memory.rank, plan, work);
    replay(schedule.ranks[r], stages, [&](std::size_t, double live, double logits, bool) {
      if (live <= memory.activations_bytes + memory.logits_bytes) return;
      memory.activations_bytes = live - logits;
      memory.logits_bytes = logits;
    });
    memory.peak_bytes = memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes +
                        memory.activations_bytes + memory.logits_bytes + memory.buffers_bytes;
    ranks.push_back(memory);
  }
  return ranks;
}

std::vector<MemoryPoint> activation_curve(const TimelineRank& rank, const RankOps& ops,
                                          const std::vector<StageActivations>& stages) {
  std::vector<MemoryPoint> curve;
  replay(ops, stages, [&](std::size_t op, double live, double, bool ended) {
    const double time = ended ? rank.spans[op].end : rank.spans[op].begin;
    const double earlier = curve.empty() ? 0 : curve.back().time_s;
    curve.push_back({std::max(earlier, time), live});
  });
  return curve;
}

}  // namespace rehearse
