// Copies to the host and back.
#include <algorithm>

#include "execute/rank.h"

namespace rehearse {

void Rank::offload_activations(const Op& op, kernels::Stream& stream) {
  Microbatch& microbatch = microbatch_of(op);
  if (microbatch.held.empty()) reject(op, "its forward has not run");
  if (!microbatch.offloaded.empty()) reject(op, "its activations have left before");
  microbatch.offloaded.leave(microbatch.held, stage_run(op).pieces, host_pool_, stream);
}

void Rank::reload_activations(const Op& op, kernels::Stream& stream) {
  Microbatch& microbatch = microbatch_of(op);
  if (microbatch.offloaded.empty()) reject(op, "its activations have not left for the host");
  microbatch.offloaded.return_to(pool_, stream);
}

// Ops issued earlier may still use memory that a pool gives out.
void Rank::follow_compute(kernels::Stream& stream) {
  stream.wait(streams_[static_cast<std::size_t>(Stream::compute)]->record());
}

// If an op of the compute stream waits for a copy, the copy is complete for all work that is issued from now
// on.
void Rank::settle_copies(const Op& op) {
  for (const std::int32_t wait : ops_.waits(op)) {
    const Op& copy = ops_[static_cast<std::size_t>(wait)];
    if (copy.kind == OpKind::offload) microbatch_of(copy).offloaded.have_left();
    if (copy.kind == OpKind::reload) microbatch_of(copy).offloaded.have_returned(microbatch_of(copy).held);
  }
}

// Offloads gradients of this rank's shard. Gradients that a later op still changes stay until then.
void Rank::offload_gradients(const Op& op, kernels::Stream& stream) {
  for_each_segment(op, [&](std::size_t i) {
    const Segment& segment = parameters_.segments()[i];
    SegmentRun& run = segment_runs_[i];
    if (!segment.is_summed_over_replicas_alone()) return;
    if (!parameters_.adds_up_at_host(segment)) {
      if (!comes_again(op)) take_to_host(segment, stream);
      return;
    }
    if (run.to_host == nullptr) reject(op, "its gradients have not been reduced");
    stream.copy(run.landed.data(), run.to_host, run.landed.bytes());
    gradient_buffers_.give_back(run.to_host, run.landed.bytes(), stream.record());
    run.to_host = nullptr;
    add_at_host(i, stream);
  });
}

// Adds the landed gradients to the sum of earlier microbatches.
void Rank::add_at_host(std::size_t index, kernels::Stream& stream) {
  const Segment& segment = parameters_.segments()[index];
  const SegmentRun& run = segment_runs_[index];
  kernels::Tensor more(run.landed.data(), types_.wire, 1, segment.own_elements);
  if (types_.wire != types_.gradient) {
    const kernels::Tensor widened(run.widened.data(), types_.gradient, 1, segment.own_elements);
    stream.launch_on_host(kernels::Cast{more, widened});
    more = widened;
  }
  kernels::Add add;
  add.output = segment.own(segment.gradients);
  add.inputs = {add.output, more};
  stream.launch_on_host(add);
}

// Copies the shard of complete gradients, where the optimizer steps at the host.
void Rank::take_to_host(const Segment& segment, kernels::Stream& stream) {
  if (segment.host_gradients.count == 0) return;
  stream.copy(segment.host_gradients.memory.data(), segment.own(segment.gradients).data,
              segment.host_gradients.memory.bytes());
}

// Whether the same op follows in this step. If it does, the gradients after this microbatch are not the sum.
bool Rank::comes_again(const Op& op) const {
  const auto same = [&op](const Op& other) {
    return other.kind == op.kind && other.stage == op.stage && other.part == op.part;
  };
  const auto after = ops_.ops().begin() + (&op - ops_.ops().data()) + 1;
  return std::any_of(after, ops_.ops().end(), same);
}

void Rank::reload_parameters(const Op& op, kernels::Stream& stream) {
  for_each_segment(op, [&](std::size_t i) {
    const Segment& segment = parameters_.segments()[i];
    const Elements& stepped = segment.host_values;
    if (stepped.count == 0) reject(op, "its optimizer does not step at the host");
    stream.copy(segment.own(segment.values).data, stepped.memory.data(), stepped.memory.bytes());
  });
}

}  // namespace rehearse
