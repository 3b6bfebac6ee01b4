#include "schedule/exchanged_weights.h"

#include <algorithm>

namespace rehearse {

Weights weights_of(const Op& op, const std::vector<std::vector<Weights>>& weights) {
  const std::vector<Weights>& units = weights[op.stage];
  if (op.parts > 1) return units[static_cast<std::size_t>(unit_of(op))];
  Weights sum;
  for (const Weights& unit : units) sum += unit;
  return sum;
}

int exchanged_parts(const Op& op, const std::vector<std::vector<Weights>>& weights) {
  const Weights of_op = weights_of(op, weights);
  return std::max(1, op.kind == OpKind::unshard ? of_op.all : of_op.buckets);
}

bool gathers_for_backward(const RankOps& ops, std::size_t index) {
  const Op& gather = ops[index];
  if (gather.kind != OpKind::unshard) return false;
  for (std::size_t i = index + 1; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (op.stage != gather.stage) continue;
    const bool backward = op.kind == OpKind::backward || op.kind == OpKind::backward_input;
    if (!backward && op.kind != OpKind::forward) continue;
    if (op.parts == 1 || unit_of(op) == gather.part) return backward;
  }
  return false;
}

int weight_exchanges(const RankOps& ops, std::size_t index,
                     const std::vector<std::vector<Weights>>& weights) {
  const Weights of_op = weights_of(ops[index], weights);
  if (ops[index].kind != OpKind::unshard) return of_op.buckets;
  return of_op.all + (gathers_for_backward(ops, index) ? of_op.dropped : 0);
}

}  // namespace rehearse
