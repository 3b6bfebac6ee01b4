#include "schedule/passes.h"

namespace rehearse {

namespace {

bool make_a_pair(const Op& op, const Op& next) {
  return op.kind == OpKind::forward && next.kind == OpKind::backward && op.microbatch != next.microbatch;
}

// Indices of the compute ops of a rank.
std::vector<std::size_t> compute_ops(const RankOps& ops) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (is_compute(ops[i].kind)) indices.push_back(i);
  return indices;
}

}  // namespace

Schedule pair_passes(const Schedule& schedule) {
  Schedule paired{schedule.pp, schedule.stages, schedule.microbatches, {}};
  for (const RankOps& ops : schedule.ranks) {
    std::vector<std::int16_t> beside(ops.size(), -1);
    const std::vector<std::size_t> passes = compute_ops(ops);
    for (std::size_t i = 0; i + 1 < passes.size(); ++i) {
      const std::size_t first = passes[i], second = passes[i + 1];
      if (!make_a_pair(ops[first], ops[second])) continue;
      beside[first] = static_cast<std::int16_t>(ops[second].stage);
      beside[second] = static_cast<std::int16_t>(ops[first].stage);
    }
    RankOps& list = paired.ranks.emplace_back();
    list.reserve(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      Op op = ops[i];
      op.beside = beside[i];
      list.add(op, ops.waits(ops[i]));
    }
  }
  return paired;
}

}  // namespace rehearse
