// Messages between pipeline ranks.
#include "execute/rank.h"

namespace rehearse {

Memory Rank::message_place(kernels::Buffer& buffer) const {
  return {Memory(), buffer.data()};  // not owned
}

kernels::Tensor Rank::boundary(const kernels::Buffer& buffer) const {
  return {buffer.data(), types_.value, 1,
          static_cast<std::int64_t>(buffer.bytes() / kernels::bytes_of(types_.value))};
}

void Rank::send(const Op& op, kernels::Stream& stream) {
  Microbatch& microbatch = microbatch_of(op);
  const bool forward = op.kind == OpKind::send_forward;
  Memory& outgoing = forward ? microbatch.outgoing : microbatch.outgoing_gradient;
  if (!outgoing) reject(op, "its payload has not been computed");
  outgoing.reset();
  if (forward) {
    groups_.forward->send(stream, boundary(microbatch.sent), rank_of(op.stage + 1));
  } else {
    groups_.backward->send(stream, boundary(microbatch.sent_gradient), rank_of(op.stage - 1));
  }
}

void Rank::receive(const Op& op, kernels::Stream& stream) {
  Microbatch& microbatch = microbatch_of(op);
  if (op.kind == OpKind::recv_forward) {
    groups_.forward->receive(stream, boundary(microbatch.received), rank_of(op.stage - 1));
    microbatch.arrived = message_place(microbatch.received);
  } else {
    groups_.backward->receive(stream, boundary(microbatch.received_gradient), rank_of(op.stage + 1));
    microbatch.arrived_gradient = message_place(microbatch.received_gradient);
  }
}

}  // namespace rehearse
