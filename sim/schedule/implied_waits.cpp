#include "schedule/implied_waits.h"

#include <algorithm>

namespace rehearse {

namespace {

std::uint64_t key(OpKind kind, const Op& op) {
  return (static_cast<std::uint64_t>(kind) << 48) | (static_cast<std::uint64_t>(op.stage) << 32) |
         static_cast<std::uint32_t>(op.microbatch);
}

}  // namespace

std::vector<std::int32_t> ImpliedWaits::of(const Op& op) const {
  std::int32_t wait = -1;
  switch (op.kind) {
    case OpKind::forward:
      wait = find(OpKind::recv_forward, op);
      break;
    case OpKind::backward:
    case OpKind::backward_input:
      wait = find(OpKind::recv_backward, op);
      break;
    case OpKind::send_forward:
      wait = find(OpKind::forward, op);
      break;
    case OpKind::send_backward:
      wait = std::max(find(OpKind::backward, op), find(OpKind::backward_input, op));
      break;
    case OpKind::reduce_grad:
    case OpKind::reduce_tied:
      wait = latest_gradient_;
      break;
    case OpKind::step:
      wait = latest_reduction_;
      break;
    default:
      break;
  }
  if (wait < 0 || (is_compute(op.kind) && op.part > 0)) return {};
  return {wait};
}

void ImpliedWaits::note(const Op& op, std::int32_t index) {
  latest_[key(op.kind, op)] = index;
  if (completes_gradient(op.kind)) latest_gradient_ = index;
  if (op.stream == Stream::gradient) latest_reduction_ = index;
}

std::int32_t ImpliedWaits::find(OpKind kind, const Op& op) const {
  const auto found = latest_.find(key(kind, op));
  return found == latest_.end() ? -1 : found->second;
}

}  // namespace rehearse
