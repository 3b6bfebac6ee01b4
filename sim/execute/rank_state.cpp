// Parameters and gradients: gathered, dropped and reduced by the ranks that hold the same ones.
#include <algorithm>

#include "execute/rank.h"
#include "plan/sharding.h"

namespace rehearse {

void Rank::make_segments() {
  for (std::size_t i = 0; i < segment_runs_.size(); ++i) {
    const Segment& segment = parameters_.segments()[i];
    const Division& division = parameters_.division(segment);
    SegmentRun& run = segment_runs_[i];
    if (!division.values) point(run.values, segment.whole(segment.values));
    if (parameters_.adds_up_at_host(segment)) {
      const auto at_host = [&](kernels::Type type) {
        return kernels::Buffer(device_, segment.own_bytes(type), kernels::Place::host);
      };
      run.landed = at_host(types_.wire);
      if (types_.wire != types_.gradient) run.widened = at_host(types_.gradient);
    } else if (division.gradients) {
      run.arriving = kernels::Buffer(device_, segment.own_bytes(types_.wire));
    } else if (types_.fresh_gradient != types_.gradient) {
      run.fresh = kernels::Buffer(device_, segment.bytes(types_.fresh_gradient));
      streams_.front()->clear(run.fresh.data(), run.fresh.bytes());
      point(run.gradients, segment.whole(run.fresh.data(), types_.fresh_gradient));
    } else {
      point(run.gradients, segment.whole(segment.gradients));
    }
  }
}

// Points uses at a segment's elements, or to no memory if `segment` is not given.
void Rank::point(const std::vector<Use>& uses, const kernels::Tensor& segment) {
  for (const Use& use : uses) {
    const Parameter& parameter = parameters_.all()[use.parameter];
    use.piece->fixed[use.tensor] = segment.given() ? segment.slice(parameter.first, 0).data : nullptr;
  }
}

void Rank::gather_parameters(const Op& op, kernels::Stream& stream) {
  for_each_segment(op, [&](std::size_t i) {
    const Segment& segment = parameters_.segments()[i];
    if (!holders(segment).parameters) return;
    SegmentRun& run = segment_runs_[i];
    void* whole = segment.values.memory.data();
    if (parameters_.division(segment).values) {
      if (run.gathered) return;
      run.gathered = parameter_pool_.take(segment.bytes(types_.value));
      whole = run.gathered.get();
      point(run.values, segment.whole(whole, types_.value));
    }
    holders(segment).parameters->all_gather(stream, segment.own(segment.values),
                                            segment.whole(whole, types_.value));
  });
}

// Parameters that two units read stay until the step, as in the unit that FSDP calls root.
void Rank::drop_parameters(const Op& op) {
  for_each_segment(op, [&](std::size_t i) {
    const Segment& segment = parameters_.segments()[i];
    if (!holders(segment).parameters) return;
    SegmentRun& run = segment_runs_[i];
    if (!run.gathered) reject(op, "its parameters were not gathered");
    if (segment.read_by_two_units) return;
    run.gathered.reset();
    point(run.values, {});
  });
}

// visit(index) for the segments to whose gradients an op's pieces add.
template <typename Visit>
void Rank::for_each_written(const Op& op, const Visit& visit) {
  const StageRun& stage = stage_run(op);
  const Range range = pieces_of(op, stage);
  const Piece* first = stage.pieces.data() + range.first;
  const Piece* last = stage.pieces.data() + range.last;
  for (std::size_t i = 0; i < segment_runs_.size(); ++i) {
    const bool written = std::ranges::any_of(
        segment_runs_[i].gradients, [&](const Use& use) { return use.piece >= first && use.piece < last; });
    if (written) visit(i);
  }
}

// Where gradients are reduced microbatch by microbatch, each microbatch begins with gradients of 0.
void Rank::make_room_for_gradients(const Op& op, kernels::Stream& stream) {
  if (!reduces_each_microbatch(training_.plan)) return;
  for_each_written(op, [&](std::size_t i) {
    const Segment& segment = parameters_.segments()[i];
    SegmentRun& run = segment_runs_[i];
    if (!parameters_.division(segment).gradients || run.microbatch_sum != nullptr) return;
    const std::size_t bytes = segment.bytes(types_.fresh_gradient);
    run.microbatch_sum = gradient_buffers_.take(bytes, stream);
    stream.clear(run.microbatch_sum, bytes);
    point(run.gradients, segment.whole(run.microbatch_sum, types_.fresh_gradient));
  });
}

// Adds a microbatch's 16-bit gradients to the fp32 sum of earlier ones, as DeepSpeed's BF16_Optimizer does.
void Rank::add_fresh_gradients(const Op& op, kernels::Stream& stream) {
  for_each_written(op, [&](std::size_t i) {
    const Segment& segment = parameters_.segments()[i];
    const kernels::Buffer& fresh = segment_runs_[i].fresh;
    if (fresh.data() == nullptr) return;
    add(segment.whole(fresh.data(), types_.fresh_gradient), segment.whole(segment.gradients), stream);
    stream.clear(fresh.data(), fresh.bytes());
  });
}

void Rank::reduce_gradients(const Op& op, kernels::Stream& stream) {
  for_each_segment(op, [&](std::size_t i) {
    const Segment& segment = parameters_.segments()[i];
    Groups::Holders& among = holders(segment);
    if (!among.gradients) return;
    if (parameters_.division(segment).gradients) {
      if (segment_runs_[i].microbatch_sum == nullptr) reject(op, "its gradients have not been made");
      return reduce_microbatch(i, stream);
    }
    const kernels::Tensor gradients = segment.whole(segment.gradients);
    sum_over(*among.gradients, reduction_, gradients,
             training_.plan.zero > 0 ? segment.own(segment.gradients) : gradients, stream);
  });
}

void Rank::reduce_microbatch(std::size_t index, kernels::Stream& stream) {
  const Segment& segment = parameters_.segments()[index];
  SegmentRun& run = segment_runs_[index];
  const kernels::Type fresh = types_.fresh_gradient;
  if (parameters_.adds_up_at_host(segment)) {
    if (run.to_host != nullptr) throw kernels::DeviceError("gradients that were reduced have not left");
    run.to_host = gradient_buffers_.take(segment.own_bytes(types_.wire), stream);
  }
  sum_over(*holders(segment).gradients, reduction_, segment.whole(run.microbatch_sum, fresh), arriving(index),
           stream);
  gradient_buffers_.give_back(run.microbatch_sum, segment.bytes(fresh), stream.record());
  run.microbatch_sum = nullptr;
  point(run.gradients, {});
  if (!holders(segment).replicas) add_arrived(index, stream);
}

void Rank::reduce_replicas(const Op& op, kernels::Stream& stream) {
  for_each_segment(op, [&](std::size_t i) {
    const Segment& segment = parameters_.segments()[i];
    Groups::Holders& among = holders(segment);
    if (!among.replicas) return;
    const bool divided = parameters_.division(segment).gradients;
    const kernels::Tensor shard = divided ? arriving(i) : segment.own(segment.gradients);
    sum_over(*among.replicas, CollectiveOp::all_reduce, shard, shard, stream);
    if (divided) add_arrived(i, stream);
  });
}

kernels::Tensor Rank::arriving(std::size_t segment) const {
  const SegmentRun& run = segment_runs_[segment];
  return {run.to_host != nullptr ? run.to_host : run.arriving.data(), types_.wire, 1,
          parameters_.segments()[segment].own_elements};
}

// Adds to the sum of earlier microbatches, where that is not at the host.
void Rank::add_arrived(std::size_t index, kernels::Stream& stream) {
  const Segment& segment = parameters_.segments()[index];
  if (parameters_.adds_up_at_host(segment)) return;
  add(arriving(index), segment.own(segment.gradients), stream);
}

// Sums the gradients of a group's ranks. They are sent and summed in the type of the wire. `sum`: this rank's
// part of the sum, or all of it.
void Rank::sum_over(kernels::Communicator& group, CollectiveOp op, const kernels::Tensor& gradients,
                    const kernels::Tensor& sum, kernels::Stream& stream) {
  const bool whole = op == CollectiveOp::all_reduce, keeps_part = gradients.columns != sum.columns;
  const auto reduce = [&](const kernels::Tensor& from, const kernels::Tensor& to) {
    whole ? group.all_reduce(stream, from, to) : group.reduce_scatter(stream, from, to);
  };
  const bool arrives_there = sum.type == types_.wire && whole != keeps_part;
  if (gradients.type == types_.wire && arrives_there) return reduce(gradients, sum);
  const auto bytes = static_cast<std::size_t>(gradients.columns) * kernels::bytes_of(types_.wire);
  void* memory = gradient_buffers_.take(bytes, stream);
  const kernels::Tensor sent(memory, types_.wire, 1, gradients.columns);
  const kernels::Tensor own = sent.slice(keeps_part ? group.rank() * sum.columns : 0, sum.columns);
  stream.launch(kernels::Cast{gradients, sent});
  reduce(sent, arrives_there ? sum : whole ? sent : own);
  if (!arrives_there) stream.launch(kernels::Cast{own, sum});
  gradient_buffers_.give_back(memory, bytes, stream.record());
}

// Adds to a sum that may have another type.
void Rank::add(const kernels::Tensor& more, const kernels::Tensor& sum, kernels::Stream& stream) {
  kernels::Add add;
  add.inputs = {sum, more};
  add.output = sum;
  if (more.type == sum.type) return stream.launch(add);
  const auto bytes = static_cast<std::size_t>(more.columns) * kernels::bytes_of(sum.type);
  void* memory = gradient_buffers_.take(bytes, stream);
  add.inputs[1] = kernels::Tensor(memory, sum.type, 1, more.columns);
  stream.launch(kernels::Cast{more, add.inputs[1]});
  stream.launch(add);
  gradient_buffers_.give_back(memory, bytes, stream.record());
}

void Rank::reduce_tied(const Op& op, kernels::Stream& stream) {
  for (const Segment& segment : parameters_.segments()) {
    if (segment.stage != op.stage || segment.summed != SummedOver::other_stage_too) continue;
    const kernels::Tensor own = segment.own(segment.gradients);
    sum_over(*groups_.tied, CollectiveOp::all_reduce, own, own, stream);
    take_to_host(segment, stream);
  }
}

}  // namespace rehearse
