// The optimizer step.
#include <algorithm>
#include <cmath>

#include "execute/rank.h"
#include "plan/sharding.h"

namespace rehearse {

namespace {

// Weight of the loss of an MTP layer (Megatron core's mtp_loss_scaling_factor).
constexpr float kLossAhead = 0.1F;

}  // namespace

// All ranks meet, where they step together.
void Rank::meet_before_step(kernels::Stream& stream) {
  if (!groups_.step) return;
  const kernels::Tensor go(go_.data(), kernels::Type::fp32, 1, 1);
  groups_.step->all_reduce(stream, go, go);
}

void Rank::step(kernels::Stream& stream) {
  for (const Segment& segment : parameters_.segments()) {
    if (segment.summed != SummedOver::tensor_ranks_too) continue;
    const kernels::Tensor own = segment.own(segment.gradients);
    groups_.tensor->all_reduce(stream, own, own);
    take_to_host(segment, stream);
  }
  for (const Segment& segment : parameters_.segments())
    if (segment.gradient_copy.count > 0)
      launch_step(kernels::Cast{segment.own(segment.sums()), segment.own(segment.gradient_copy)}, stream);
  stream.clear(squares_.data(), squares_.bytes());
  Block scratch;
  const std::vector<Kernel> kernels = optimizer_kernels(1, step_plan_, scratch);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const bool of_segments =
        scratch.tensors[static_cast<std::size_t>(kernels[i].reads[0])].use == TensorUse::stepped_gradient;
    if (std::holds_alternative<Collective>(kernels[i].what)) {
      sum_squares(stream);
    } else if (of_segments) {
      for (const Segment& segment : parameters_.segments()) run_optimizer(i, &segment, stream);
    } else {
      run_optimizer(i, nullptr, stream);
    }
  }
}

// Launches on the device where the optimizer steps.
void Rank::launch_step(const kernels::Call& call, kernels::Stream& stream) {
  types_.optimizer == kernels::Place::host ? stream.launch_on_host(call) : stream.launch(call);
}

// Sums the squares of all ranks, which meet on their devices.
void Rank::sum_squares(kernels::Stream& stream) {
  if (types_.optimizer == kernels::Place::device) {
    const kernels::Tensor squares(squares_.data(), kernels::Type::fp32, 1, 1);
    return groups_.step->all_reduce(stream, squares, squares);
  }
  void* on_device = gradient_buffers_.take(squares_.bytes(), stream);
  const kernels::Tensor squares(on_device, kernels::Type::fp32, 1, 1);
  stream.copy(on_device, squares_.data(), squares_.bytes());
  groups_.step->all_reduce(stream, squares, squares);
  stream.copy(squares_.data(), on_device, squares_.bytes());
  gradient_buffers_.give_back(on_device, squares_.bytes(), stream.record());
}

// Factor of every token's loss: its share of the mean, times the step's scale.
void Rank::set_loss_scale() {
  if (loss_scale_) step_loss_scale_ = loss_scale_->value();
  const auto tokens = static_cast<float>(training_.plan.global_batch * training_.plan.seq);
  for (auto& [index, stage] : stages_)
    for (std::size_t i = 0; i < stage.bound.size(); ++i)
      stage.bound[i].loss_scale = (stage.pieces[i].reads_ahead ? kLossAhead : 1) * step_loss_scale_ / tokens;
}

// All ranks read the same norm, so they scale the next step's loss equally.
void Rank::end_step() {
  if (step_plan_.clip_grad > 0) {
    float squares = 0;
    kernels::Stream& stream = *streams_[static_cast<std::size_t>(Stream::compute)];
    stream.copy(&squares, squares_.data(), sizeof squares);
    stream.synchronize();
    gradient_norm_ = std::sqrt(double{squares}) / step_loss_scale_;
  }
  skipped_ = loss_scale_ && !std::isfinite(gradient_norm_);
  if (loss_scale_) loss_scale_->update(skipped_);
  if (!skipped_) ++steps_taken_;
}

// Kernel number `kernel` of the step, over a segment's shard, or over data common to all parameters.
void Rank::run_optimizer(std::size_t kernel, const Segment* segment, kernels::Stream& stream) {
  Block scratch;
  const std::vector<Kernel> kernels = optimizer_kernels(
      segment == nullptr ? 1 : static_cast<double>(segment->own_elements), step_plan_, scratch);
  const auto memory = [&](TensorId id) -> void* {
    const std::string& name = scratch.tensors[static_cast<std::size_t>(id)].name;
    if (name == "squares") return squares_.data();
    if (name == "scale") return scale_.data();
    if (name == "gradient") return segment->own(segment->stepped()).data;
    if (name == "first_moment") return segment->mean.memory.data();
    if (name == "second_moment") return segment->square.memory.data();
    const bool is_value =
        type_of(scratch.tensors[static_cast<std::size_t>(id)], training_.plan.precision) == types_.value;
    return is_value ? segment->own(segment->written()).data : segment->master.memory.data();
  };
  const BoundBlock bound = bind_block(scratch, training_.model, step_plan_, memory);
  for (kernels::Call& call : calls_of(bound, kernels[kernel])) {
    if (auto* adam = std::get_if<kernels::Adam>(&call)) {
      adam->rate = training_.rate;
      adam->step = steps_taken_ + 1;
      if (types_.has_master)
        adam->weight = segment->own(segment->written());  // FSDP's recipe names the wide one
    } else if (auto* squares = std::get_if<kernels::SquareSum>(&call)) {
      squares->input = counted_squares(*segment);
      if (squares->input.elements() == 0) continue;
    } else if (auto* clip = std::get_if<kernels::ClipScale>(&call)) {
      if (loss_scale_) clip->loss_scale = step_loss_scale_;
    }
    launch_step(call, stream);
  }
}

// The part of a shard that no other rank counts. Where several ranks hold a parameter, the first one counts
// it.
kernels::Tensor Rank::counted_squares(const Segment& segment) const {
  const Plan& plan = training_.plan;
  const RankGrid grid = segment.is_of_experts() ? RankGrid::of_experts(plan) : RankGrid(plan);
  std::int64_t last = segment.own_first + segment.own_elements;
  if (!segment.is_of_experts() && at_[static_cast<std::size_t>(Axis::tp)] > 0)
    last = std::min(last, segment.divided_elements);
  const bool first_replica = grid.replica_position(rank_) < parameters_.division(segment).shards;
  const bool other_stage_counts = segment.summed == SummedOver::other_stage_too && segment.stage > 0;
  if (!first_replica || other_stage_counts) last = segment.own_first;
  return Segment::range(segment.stepped(), segment.own_first,
                        std::max<std::int64_t>(0, last - segment.own_first));
}

}  // namespace rehearse
