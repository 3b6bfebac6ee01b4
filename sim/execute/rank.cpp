#include "execute/rank.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "execute/batch.h"
#include "plan/messages.h"
#include "plan/sharding.h"
#include "schedule/placement.h"

namespace rehearse {

namespace {

constexpr auto kTp = static_cast<std::size_t>(Axis::tp);
constexpr auto kCp = static_cast<std::size_t>(Axis::cp);
constexpr auto kDp = static_cast<std::size_t>(Axis::dp);
constexpr auto kCompute = static_cast<std::size_t>(Stream::compute);
constexpr auto kPp = static_cast<std::size_t>(Axis::pp);

bool divides_stage(OpKind kind) {
  return kind == OpKind::unshard || kind == OpKind::reduce_grad || kind == OpKind::offload_grad;
}

// Number of parts in which a stage's parameters are gathered or its gradients reduced.
int units_of(const RankOps& ops, int stage) {
  int units = 1;
  for (const Op& op : ops.ops())
    if (op.stage == stage && divides_stage(op.kind)) units = std::max(units, int{op.parts});
  return units;
}

Division division_of(const Plan& plan, int place, int holders, int shards) {
  return {place % shards, shards, plan.zero >= 3 && shards > 1, holders > 1 && reduces_each_microbatch(plan)};
}

Division dense_division(const Plan& plan, int rank) {
  return division_of(plan, RankGrid(plan).replica_position(rank), plan.dp * plan.cp, shard_size(plan));
}

Division expert_division(const Plan& plan, int rank) {
  const int place = RankGrid::of_experts(plan).replica_position(rank);
  return division_of(plan, place, plan.edp(), expert_shard_size(plan));
}

}  // namespace

Rank::Rank(const Training& training, kernels::Device& device, kernels::World& world)
    : training_(training),
      device_(device),
      at_(RankGrid(training.plan).coordinates(world.rank())),
      rank_(world.rank()),
      pipeline_rank_(at_[kPp]),
      ops_(training.schedule.ranks[static_cast<std::size_t>(pipeline_rank_)]),
      rank_of_stage_(ranks_by_stage(training.schedule)),
      types_(state_types(training.plan)),
      reduction_(gradient_reduction(training.plan)),
      groups_(connect_groups(training, world)),
      parameters_(dense_division(training.plan, rank_), expert_division(training.plan, rank_), types_),
      pool_(device),
      host_pool_(device, kernels::Place::host),
      parameter_pool_(device),
      gradient_buffers_(device),
      go_(device, sizeof(float)),
      squares_(device, sizeof(float), types_.optimizer),
      scale_(device, sizeof(float), types_.optimizer),
      begins_(ops_.size()),
      ends_(ops_.size()),
      step_plan_(training.plan) {
  if (scales_loss(training.plan)) {
    loss_scale_.emplace(training.loss_scaling);
    // The norm detects overflows, whether it clips or not.
    if (step_plan_.clip_grad == 0) step_plan_.clip_grad = std::numeric_limits<double>::infinity();
  }
  make_streams();
  make_stages();
}

void Rank::make_streams() {
  const auto make = [&](rehearse::Stream which) {
    std::unique_ptr<kernels::Stream>& stream = streams_[static_cast<std::size_t>(which)];
    if (!stream) stream = device_.make_stream();
  };
  make(Stream::compute);
  for (const Op& op : ops_.ops()) make(queue_of(op));
}

void Rank::make_stages() {
  std::map<int, std::vector<std::vector<ParameterOf>>> roles;
  for (int stage = 0; stage < training_.schedule.stages; ++stage) {
    if (rank_of(stage) != pipeline_rank_) continue;
    StageRun& run = stages_[stage] = make_stage(stage);
    roles[stage] = add_parameters(training_, stage, run.pieces, run.units, rank_, parameters_);
  }
  parameters_.allocate(device_);
  kernels::Stream& stream = *streams_[kCompute];
  parameters_.initialise(stream, training_.seed);
  stream.clear(go_.data(), go_.bytes());
  if (training_.plan.cp > 1) make_positions();
  if (training_.model.experts) make_sorting_place();
  segment_runs_.resize(parameters_.segments().size());
  for (auto& [stage, run] : stages_) {
    note_uses(run, roles[stage]);
    bind(run);
  }
  make_segments();
}

Rank::StageRun Rank::make_stage(int stage) {
  StageRun run;
  run.units = units_of(ops_, stage);
  run.pieces = make_pieces(training_, stage);
  run.microbatches.resize(static_cast<std::size_t>(training_.schedule.microbatches));
  const auto boundary_bytes = static_cast<std::size_t>(training_.work.boundary_bytes);
  const auto rows =
      static_cast<std::size_t>(training_.plan.seq / training_.plan.cp * training_.plan.micro_batch);
  const bool reads_tokens = run.pieces.front().find("tokens") >= 0;
  const bool makes_loss = run.pieces.back().find("loss") >= 0;
  const bool reads_ahead = std::ranges::any_of(run.pieces, &Piece::reads_ahead);
  const auto elsewhere = [&](int other) {
    return other >= 0 && other < training_.schedule.stages && rank_of(other) != pipeline_rank_;
  };
  for (Microbatch& microbatch : run.microbatches) {
    const auto make = [&](bool needed, kernels::Buffer& buffer, std::size_t bytes) {
      if (needed) buffer = kernels::Buffer(device_, bytes);
    };
    make(elsewhere(stage + 1), microbatch.sent, boundary_bytes);
    make(elsewhere(stage + 1), microbatch.received_gradient, boundary_bytes);
    make(elsewhere(stage - 1), microbatch.received, boundary_bytes);
    make(elsewhere(stage - 1), microbatch.sent_gradient, boundary_bytes);
    make(reads_tokens, microbatch.next.tokens, rows * sizeof(std::int64_t));
    make(reads_ahead, microbatch.ahead.tokens, rows * sizeof(std::int64_t));
    for (Reading* reading : {&microbatch.next, &microbatch.ahead}) {
      const bool needed = reading == &microbatch.next ? makes_loss : reads_ahead;
      make(needed, reading->labels, rows * sizeof(std::int64_t));
      make(needed, reading->losses, rows * sizeof(float));
    }
  }
  return run;
}

void Rank::note_uses(StageRun& stage, const std::vector<std::vector<ParameterOf>>& roles) {
  const auto segment_of = [&](std::int64_t parameter) -> SegmentRun& {
    return segment_runs_[parameters_.all()[static_cast<std::size_t>(parameter)].segment];
  };
  for (std::size_t i = 0; i < stage.pieces.size(); ++i) {
    for (std::size_t tensor = 0; tensor < roles[i].size(); ++tensor) {
      const auto [value, gradient] = roles[i][tensor];
      const auto use = [&](std::int64_t parameter) {
        return Use{&stage.pieces[i], tensor, static_cast<std::size_t>(parameter)};
      };
      if (value >= 0) segment_of(value).values.push_back(use(value));
      if (gradient >= 0) segment_of(gradient).gradients.push_back(use(gradient));
    }
  }
}

void Rank::bind(StageRun& stage) {
  const Plan& plan = training_.plan;
  stage.bound.reserve(stage.pieces.size());
  for (const Piece& piece : stage.pieces) {
    BoundBlock bound = bind_block(*piece.block, training_.model, plan,
                                  [this, &piece](TensorId matrix) { return locate(piece, matrix); });
    bound.tensor_rank = at_[kTp];
    bound.context_rank = at_[kCp];
    if (plan.cp > 1) bound.positions = {positions_.data(), kernels::Type::int32, 1, plan.seq};
    bound.rows_of_choices = {rows_of_choices_.data(), kernels::Type::int32, 1,
                             static_cast<std::int64_t>(rows_of_choices_.bytes() / sizeof(std::int32_t))};
    bound.experts_in_turn = true;
    bound.first_vocabulary_row = at_[kTp] * bound.shape.vocab;
    bound.first_position = bound.shape.sequence_parallel ? at_[kTp] * bound.shape.seq / plan.tp : 0;
    stage.bound.push_back(std::move(bound));
  }
}

void Rank::prepare(std::int64_t step) {
  step_ = step;
  issued_ = ended_ = 0;
  set_loss_scale();
  for (SegmentRun& segment : segment_runs_) {
    if (segment.gathered) point(segment.values, {});
    segment.gathered.reset();
  }
  for (auto& [index, stage] : stages_) {
    for (int m = 0; m < training_.schedule.microbatches; ++m) copy_batch(m, stage);
  }
  kernels::Stream& stream = *streams_[kCompute];
  for (const Segment& segment : parameters_.segments())
    stream.clear(segment.gradients.memory.data(), segment.gradients.memory.bytes());
  stream.synchronize();
}

void Rank::copy_batch(int microbatch, StageRun& stage) {
  const Microbatch& to = stage.microbatches[static_cast<std::size_t>(microbatch)];
  copy_batch(microbatch, to.next, 0);
  copy_batch(microbatch, to.ahead, 1);
}

void Rank::copy_batch(int microbatch, const Reading& to, std::int64_t ahead) {
  if (to.tokens.data() == nullptr && to.labels.data() == nullptr) return;
  const Batch batch = make_batch(training_, step_, at_[kDp], at_[kCp], microbatch, ahead);
  kernels::Stream& stream = *streams_[kCompute];
  if (to.tokens.data() != nullptr) stream.copy(to.tokens.data(), batch.tokens.data(), to.tokens.bytes());
  if (to.labels.data() != nullptr) stream.copy(to.labels.data(), batch.labels.data(), to.labels.bytes());
  stream.synchronize();  // the copies read `batch`
}

std::shared_ptr<kernels::Event> Rank::mark() {
  return streams_[static_cast<std::size_t>(Stream::compute)]->record();
}

void Rank::run() {
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    issue(i);
    issued_ = i + 1;
  }
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    ends_[i]->wait();
    ended_ = i + 1;
  }
  for (const std::unique_ptr<kernels::Stream>& stream : streams_)
    if (stream) stream->synchronize();
  add_up_losses();
  end_step();
}

void Rank::end_streams() {
  for (std::unique_ptr<kernels::Stream>& stream : streams_) stream.reset();
}

void Rank::add_up_losses() {
  double sum = 0;
  kernels::Stream& stream = *streams_[kCompute];
  for (const auto& [index, stage] : stages_) {
    for (const Microbatch& microbatch : stage.microbatches) {
      const kernels::Buffer& of_tokens = microbatch.next.losses;
      std::vector<float> losses(of_tokens.bytes() / sizeof(float));
      if (losses.empty()) continue;
      stream.copy(losses.data(), of_tokens.data(), of_tokens.bytes());
      stream.synchronize();
      for (const float loss : losses) sum += double{loss};
    }
  }
  loss_ = sum / static_cast<double>(training_.plan.global_batch * training_.plan.seq);
}

void Rank::issue(std::size_t index) {
  const Op& op = ops_[index];
  kernels::Stream& stream = *streams_[static_cast<std::size_t>(queue_of(op))];
  for (const std::int32_t wait : ops_.waits(op)) stream.wait(ends_[static_cast<std::size_t>(wait)]);
  if (is_compute(op.kind)) settle_copies(op);
  if (op.kind == OpKind::offload || op.kind == OpKind::reload) follow_compute(stream);
  if (op.kind == OpKind::step) meet_before_step(stream);
  if (completes_gradient(op.kind)) make_room_for_gradients(op, stream);
  begins_[index] = stream.record();
  launch(op, stream);
  if (completes_gradient(op.kind)) add_fresh_gradients(op, stream);
  ends_[index] = stream.record();
}

std::string Rank::stands_at() const {
  const std::size_t ended = ended_.load();
  return ended < ops_.size() ? to_string(ops_[ended]) : "";
}

Rank::StageRun& Rank::stage_run(const Op& op) {
  const auto found = stages_.find(op.stage);
  if (found == stages_.end()) reject(op, "the stage lies on another rank");
  return found->second;
}

Rank::Microbatch& Rank::microbatch_of(const Op& op) {
  return stage_run(op).microbatches.at(static_cast<std::size_t>(op.microbatch));
}

void Rank::reject(const Op& op, const std::string& why) const {
  throw kernels::DeviceError(fmt::format("rank {} cannot run {}: {}", rank_, to_string(op), why));
}

}  // namespace rehearse
