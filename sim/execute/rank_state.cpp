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
    if (!division.values) point(run.values, segment.values.memory.data());
    if (division.gradients) {
      run.arriving = kernels::Buffer(device_, static_cast<std::size_t>(segment.own_elements) * sizeof(float));
    } else {
      point(run.gradients, segment.gradients.memory.data());
    }
  }
}

// At the segment that begins at `segment`; nullptr: it is nowhere.
void Rank::point(const std::vector<Use>& uses, void* segment) {
  for (const Use& use : uses) {
    const Parameter& parameter = parameters_.all()[use.parameter];
    use.piece->fixed[use.tensor] =
        segment == nullptr ? nullptr : static_cast<float*>(segment) + parameter.first;
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
      run.gathered = parameter_pool_.take(segment.bytes());
      whole = run.gathered.get();
      point(run.values, whole);
    }
    holders(segment).parameters->all_gather(stream, segment.own(segment.values), segment.whole(whole));
  });
}

// What two units read stays until the step, as in the unit that FSDP calls root.
void Rank::drop_parameters(const Op& op) {
  for_each_segment(op, [&](std::size_t i) {
    const Segment& segment = parameters_.segments()[i];
    if (!holders(segment).parameters) return;
    SegmentRun& run = segment_runs_[i];
    if (!run.gathered) reject(op, "its parameters were not gathered");
    if (segment.read_by_two_units) return;
    run.gathered.reset();
    point(run.values, nullptr);
  });
}

// Where gradients are reduced microbatch by microbatch, each microbatch begins with gradients of 0.
void Rank::make_room_for_gradients(const Op& op, kernels::Stream& stream) {
  if (!reduces_each_microbatch(training_.plan)) return;
  const StageRun& stage = stage_run(op);
  const Range range = pieces_of(op, stage);
  const Piece* first = stage.pieces.data() + range.first;
  const Piece* last = stage.pieces.data() + range.last;
  for (std::size_t i = 0; i < segment_runs_.size(); ++i) {
    const Segment& segment = parameters_.segments()[i];
    if (!parameters_.division(segment).gradients) continue;
    SegmentRun& run = segment_runs_[i];
    const bool written = std::ranges::any_of(
        run.gradients, [&](const Use& use) { return use.piece >= first && use.piece < last; });
    if (!written || run.microbatch_sum != nullptr) continue;
    run.microbatch_sum = gradient_buffers_.take(segment.bytes(), stream);
    stream.clear(run.microbatch_sum, segment.bytes());
    point(run.gradients, run.microbatch_sum);
  }
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
    if (training_.plan.zero > 0) {
      among.gradients->reduce_scatter(stream, gradients, segment.own(segment.gradients));
    } else {
      among.gradients->all_reduce(stream, gradients, gradients);
    }
  });
}

void Rank::reduce_microbatch(std::size_t index, kernels::Stream& stream) {
  const Segment& segment = parameters_.segments()[index];
  SegmentRun& run = segment_runs_[index];
  holders(segment).gradients->reduce_scatter(
      stream, segment.whole(run.microbatch_sum),
      {run.arriving.data(), kernels::Type::fp32, 1, segment.own_elements});
  gradient_buffers_.give_back(run.microbatch_sum, segment.bytes(), stream.record());
  run.microbatch_sum = nullptr;
  point(run.gradients, nullptr);
  if (!holders(segment).replicas) add_arrived(index, stream);
}

void Rank::reduce_replicas(const Op& op, kernels::Stream& stream) {
  for_each_segment(op, [&](std::size_t i) {
    const Segment& segment = parameters_.segments()[i];
    Groups::Holders& among = holders(segment);
    if (!among.replicas) return;
    const bool divided = parameters_.division(segment).gradients;
    const kernels::Tensor shard = divided ? kernels::Tensor(segment_runs_[i].arriving.data(),
                                                            kernels::Type::fp32, 1, segment.own_elements)
                                          : segment.own(segment.gradients);
    among.replicas->all_reduce(stream, shard, shard);
    if (divided) add_arrived(i, stream);
  });
}

// To the sum over the microbatches before.
void Rank::add_arrived(std::size_t index, kernels::Stream& stream) {
  const Segment& segment = parameters_.segments()[index];
  const kernels::Tensor sum = segment.own(segment.gradients);
  kernels::Add add;
  add.inputs[0] = sum;
  add.inputs[1] = {segment_runs_[index].arriving.data(), kernels::Type::fp32, 1, segment.own_elements};
  add.output = sum;
  stream.launch(add);
}

void Rank::reduce_tied(const Op& op, kernels::Stream& stream) {
  for (const Segment& segment : parameters_.segments()) {
    if (segment.stage != op.stage || segment.summed != SummedOver::other_stage_too) continue;
    const kernels::Tensor own = segment.own(segment.gradients);
    groups_.tied->all_reduce(stream, own, own);
  }
}

}  // namespace rehearse
