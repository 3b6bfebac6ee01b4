#include "schedule/op_messages.h"

namespace rehearse {

SentBy sent_by(const MessageSizes& sizes, const RankOps& ops, std::size_t index, bool whole_stage) {
  const Op& op = ops[index];
  const bool differs = !sizes.weights.empty() || !sizes.frozen_bytes.empty();
  const bool for_backward = differs && gathers_for_backward(ops, index);
  if (whole_stage) return {op.kind, op.stage, 0, 1, for_backward};
  return {op.kind, op.stage, op.part, op.parts, for_backward};
}

std::vector<Collective> messages_of(const MessageSizes& sizes, const Plan& plan, const RankOps& ops,
                                    std::size_t index) {
  return messages_of(sizes, plan, sent_by(sizes, ops, index));
}

std::vector<Collective> messages_by_group(const MessageSizes& sizes, const Plan& plan,
                                          const CommGroups& groups, const RankOps& ops, std::size_t index) {
  std::vector<Collective> joined;
  for (const Collective& message : messages_of(sizes, plan, ops, index)) {
    if (!groups.has_peers(message.group)) continue;
    const double bytes = message.bytes * static_cast<double>(message.calls);
    if (!joined.empty() && joined.back().op == message.op && joined.back().group == message.group)
      joined.back().bytes += bytes;
    else
      joined.push_back({message.op, message.group, bytes});
  }
  return joined;
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

}  // namespace rehearse
