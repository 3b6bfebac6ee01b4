#include "schedule/op_messages.h"

namespace rehearse {

std::vector<Collective> messages_of(const MessageSizes& sizes, const Plan& plan, const RankOps& ops,
                                    std::size_t index) {
  const Op& op = ops[index];
  const bool again = !sizes.weights.empty() && gathers_for_backward(ops, index);
  return messages_of(sizes, plan, {op.kind, op.stage, op.part, op.parts, again});
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
