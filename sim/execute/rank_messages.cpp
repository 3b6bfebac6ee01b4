// The ops of the other streams, and the optimizer step.
#include "execute/rank.h"

namespace rehearse {

Memory Rank::message_place(kernels::Buffer& buffer) const {
  return {Memory(), buffer.data()};  // not owned
}

kernels::Tensor Rank::boundary(const kernels::Buffer& buffer) const {
  return Segment::range(buffer, 0, static_cast<std::int64_t>(buffer.bytes() / sizeof(float)));
}

void Rank::send(const Op& op, kernels::Stream& stream) {
  Microbatch& microbatch = microbatch_of(op);
  const bool forward = op.kind == OpKind::send_forward;
  Memory& outgoing = forward ? microbatch.outgoing : microbatch.outgoing_gradient;
  if (!outgoing) reject(op, "what it sends has not been made");
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

void Rank::reduce_gradients(const Op& op, kernels::Stream& stream) {
  bool found = false;
  for (const Segment& segment : parameters_.segments()) {
    if (segment.stage != op.stage || segment.part != op.part) continue;
    found = true;
    const kernels::Tensor gradients = segment.whole(segment.gradients);
    if (training_.plan.zero > 0) {
      groups_.gradients->reduce_scatter(stream, gradients, segment.own(segment.gradients));
    } else {
      groups_.gradients->all_reduce(stream, gradients, gradients);
    }
  }
  if (!found) reject(op, "the stage has fewer layers than parts of its reduction");
}

void Rank::reduce_tied(const Op& op, kernels::Stream& stream) {
  for (const Segment& segment : parameters_.segments()) {
    if (segment.stage != op.stage || segment.summed != SummedOver::other_stage_too) continue;
    const kernels::Tensor own = segment.own(segment.gradients);
    groups_.tied->all_reduce(stream, own, own);
  }
}

void Rank::gather_parameters(const Op& op, kernels::Stream& stream) {
  if (op.parts != 1) reject(op, "parameters are gathered a whole stage at a time");
  for (const Segment& segment : parameters_.segments()) {
    if (segment.stage != op.stage) continue;
    groups_.parameters->all_gather(stream, segment.own(segment.values), segment.whole(segment.values));
  }
}

// All ranks, where they step together.
void Rank::meet_before_step(kernels::Stream& stream) {
  if (!groups_.step) return;
  const kernels::Tensor go = Segment::range(go_, 0, 1);
  groups_.step->all_reduce(stream, go, go);
}

void Rank::step(kernels::Stream& stream) {
  for (const Segment& segment : parameters_.segments()) {
    if (segment.summed != SummedOver::tensor_ranks_too) continue;
    const kernels::Tensor own = segment.own(segment.gradients);
    groups_.tensor->all_reduce(stream, own, own);
  }
  for (const Segment& segment : parameters_.segments()) {
    Block scratch;
    const Kernel kernel =
        optimizer_kernel(static_cast<double>(segment.own_elements), training_.plan, scratch);
    const auto memory = [&](TensorId id) -> void* {
      const std::string& name = scratch.tensors[static_cast<std::size_t>(id)].name;
      if (name == "gradient") return segment.own(segment.gradients).data;
      if (name == "first_moment") return segment.mean.data();
      if (name == "second_moment") return segment.square.data();
      return segment.own(segment.values).data;
    };
    kernels::Adam adam = adam_of(bind_block(scratch, training_.model, training_.plan, memory), kernel);
    adam.rate = training_.rate;
    adam.step = step_ + 1;
    stream.launch(adam);
  }
}

}  // namespace rehearse
