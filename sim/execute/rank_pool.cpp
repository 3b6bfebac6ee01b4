#include "execute/rank_pool.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <latch>
#include <limits>
#include <new>
#include <system_error>
#include <thread>

#include "execute/assemble.h"
#include "execute/cores.h"
#include "kernels/short_float.h"

namespace rehearse {

namespace {

const Training& require_executable(const Training& training) {
  std::vector<Violation> violations = not_executable(training.model, training.plan);
  for (const Violation& broken : broken_rules(training.loss_scaling)) violations.push_back(broken);
  if (!violations.empty()) throw InputError(std::move(violations));
  return training;
}

}  // namespace

RankPool::RankPool(Training training, Watch watch) : RankPool(std::move(training), std::move(watch), {}) {}

RankPool::RankPool(Training training, Watch watch, DeviceSet device_set)
    : training_(std::move(training)),
      watch_(std::move(watch)),
      tasks_(derive_tasks(require_executable(training_).schedule, training_.plan,
                          {Fold::none, training_.plan.one_queue, false})),
      device_set_(device_set.worlds.empty() ? threads_of(training_.plan) : std::move(device_set)),
      ranks_(device_set_.worlds.size()) {
  on_every_rank([this](std::size_t rank) {
    ranks_[rank] = std::make_unique<Rank>(training_, device_set_.device(rank), *device_set_.worlds[rank]);
    if (!is_alone())
      gathering_ = std::make_unique<Gathering>(*device_set_.worlds[rank], device_set_.device(rank));
    ++made_;
  });
}

// After a failure, a stream may still read memory of other ranks. So all streams end before any memory is
// released.
RankPool::~RankPool() {
  for (const std::unique_ptr<Rank>& rank : ranks_) rank->end_streams();
}

StepResult RankPool::step() {
  const std::int64_t step = steps_++;
  on_every_rank([&](std::size_t rank) { ranks_[rank]->prepare(step); });
  mark_origin();
  std::latch begin(static_cast<std::ptrdiff_t>(ranks_.size()));
  on_every_rank([&](std::size_t rank) {
    if (gathering_) gathering_->meet();
    begin.arrive_and_wait();
    ranks_[rank]->run();
  });
  StepResult result;
  bring_together(result);
  return result;
}

// Makes several tries and keeps the one with the smallest error.
void RankPool::mark_origin() {
  constexpr int kTries = 8;
  origin_error_s_ = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    const double before = now_s();
    const std::shared_ptr<kernels::Event> event = ranks_.front()->mark();
    event->wait();
    const double half = (now_s() - before) / 2;
    if (half >= origin_error_s_) continue;
    origin_ = event;
    origin_s_ = before + half;
    origin_error_s_ = half;
  }
}

std::vector<Span> RankPool::spans_of(const Rank& rank) const {
  std::vector<Span> spans;
  for (std::size_t op = 0; op < rank.ops_ended(); ++op)
    spans.push_back({origin_s_ + rank.began(op, *origin_), origin_s_ + rank.ended(op, *origin_)});
  return spans;
}

void RankPool::bring_together(StepResult& result) {
  const RankGrid grid(training_.plan);
  std::vector<std::vector<Span>> spans;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    if (grid.coordinates(rank->rank())[static_cast<std::size_t>(Axis::tp)] == 0) result.loss += rank->loss();
    spans.push_back(spans_of(*rank));
  }
  result.gradient_norm = ranks_.front()->gradient_norm();
  result.loss_scale = double{ranks_.front()->next_loss_scale()};
  result.skipped = ranks_.front()->skipped();
  if (is_alone()) {
    result.timeline = assemble(tasks_, training_.schedule, std::move(spans));
  } else {
    on_every_rank([&](std::size_t) { gather(result); });
  }
}

// Collects data of the other processes: their parts of the loss, clock errors and spans.
void RankPool::gather(StepResult& result) {
  std::vector<double> own = {result.loss, origin_error_s_};
  for (const Span& span : spans_of(*ranks_.front())) own.insert(own.end(), {span.begin, span.end});
  const std::vector<std::vector<double>> all = gathering_->collect(own);
  const std::vector<Clock> clocks = gathering_->compare_clocks();
  if (!gathering_->is_first()) return;
  result.loss = 0;
  std::vector<std::vector<Span>> spans(all.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    result.loss += all[rank][0];
    result.clock_error_s = std::max(result.clock_error_s, all[rank][1] + clocks[rank].error_s);
    for (std::size_t i = 2; i < all[rank].size(); i += 2)
      spans[rank].push_back({all[rank][i] - clocks[rank].ahead_s, all[rank][i + 1] - clocks[rank].ahead_s});
  }
  result.timeline = assemble(tasks_, training_.schedule, std::move(spans));
}

PartialRun RankPool::partial() const {
  PartialRun partial{training_.schedule, {}};
  if (!origin_) return partial;
  std::vector<std::vector<Span>> spans(static_cast<std::size_t>(training_.plan.gpus()));
  std::vector<std::size_t> ended(training_.schedule.ranks.size(), std::numeric_limits<std::size_t>::max());
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    const auto pipeline_rank = static_cast<std::size_t>(rank->pipeline_rank());
    spans[static_cast<std::size_t>(rank->rank())] = spans_of(*rank);
    ended[pipeline_rank] = std::min(ended[pipeline_rank], rank->ops_ended());
  }
  partial.timeline = assemble(tasks_, training_.schedule, std::move(spans));
  for (std::size_t i = 0; i < ended.size(); ++i) {
    const RankOps& all = training_.schedule.ranks[i];
    RankOps& first = partial.schedule.ranks[i] = {};
    for (std::size_t op = 0; op < std::min(ended[i], all.size()); ++op)
      first.add(all[op], all.waits(all[op]));
  }
  for (TimelineRank& rank : partial.timeline.ranks)
    rank.spans.resize(partial.schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)].size());
  return partial;
}

void RankPool::on_every_rank(const std::function<void(std::size_t rank)>& work) {
  std::atomic<std::size_t> done = 0;
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto run = [&, rank] {
      if (device_set_.first_core) pin_to_core(static_cast<std::size_t>(*device_set_.first_core) + rank);
      try {
        work(rank);
      } catch (const std::exception& error) {
        give_up(device_set_.worlds[rank]->rank(), error);
      }
      {
        const std::lock_guard lock(ending_);
        ++done;
      }
      ended_.notify_one();
    };
    try {
      threads.emplace_back(run);
    } catch (const std::system_error& error) {
      give_up(device_set_.worlds[rank]->rank(), error);
    }
  }
  watch_over([&] { return done == threads.size() && (std::isinf(given_up_s_) || aborted_); });
  threads.clear();
  if (failure_.empty()) return;
  if (end_ == End::interruption) throw Interrupted(failure_);
  if (end_ == End::out_of_memory) throw kernels::OutOfMemory(failure_);
  if (end_ == End::refusal) throw kernels::Refused(failure_);
  throw kernels::DeviceError(failure_);
}

void RankPool::watch_over(const std::function<bool()>& all_done) {
  constexpr auto kAsk = std::chrono::milliseconds(2);
  constexpr double kPulse_s = 0.2, kGrace_s = 5;
  const auto advanced = [this] {
    std::size_t sum = made_;
    for (std::size_t rank = 0; made_ == ranks_.size() && rank < ranks_.size(); ++rank)
      sum += ranks_[rank]->ops_issued() + ranks_[rank]->ops_ended();
    return sum;
  };
  kernels::World& world = *device_set_.worlds.front();
  double changed_s = now_s(), pulsed_s = 0;
  const auto wait = [&] {
    std::unique_lock lock(ending_);
    ended_.wait_for(lock, kAsk, all_done);
  };
  for (std::size_t before = 0; !all_done(); wait()) {
    if (watch_.stopped && watch_.stopped()) give_up("interrupted", End::interruption);
    if (const std::string end = world.ended(); !end.empty())
      give_up(end, world.refused() ? End::refusal : End::failure);
    const double now = now_s();
    if (now - given_up_s_ > kGrace_s && watch_.stuck) watch_.stuck(failure_);
    const std::size_t sum = advanced();
    if (sum != before) changed_s = now;
    before = sum;
    if (now - pulsed_s > kPulse_s) {
      world.pulse(made_ == ranks_.size() ? ranks_.front()->stands_at() : "its beginning");
      pulsed_s = now;
    }
    if (now - changed_s > watch_.timeout_s)
      give_up(fmt::format("no op has ended for {} s: {}", watch_.timeout_s, where_they_stand()),
              End::failure);
  }
}

void RankPool::give_up(int rank, const std::exception& error) try {
  if (dynamic_cast<const kernels::OutOfMemory*>(&error) != nullptr)
    give_up(fmt::format("rank {}: {}", rank, error.what()), End::out_of_memory);
  else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    give_up(fmt::format("rank {}: out of memory", rank), End::out_of_memory);
  else if (dynamic_cast<const std::system_error*>(&error) != nullptr)
    give_up(fmt::format("rank {}: no thread can be started: {}", rank, error.what()), End::failure);
  else if (dynamic_cast<const kernels::Refused*>(&error) != nullptr)
    give_up(error.what(), End::refusal);
  else
    give_up(error.what(), End::failure);
} catch (const std::bad_alloc&) {
  give_up("out of memory", End::out_of_memory);  // so short that a string holds it in itself
}

void RankPool::give_up(const std::string& reason, End end) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = reason;
    end_ = end;
    given_up_s_ = now_s();
  }
  const auto abort = [this] {
    try {
      device_set_.worlds.front()->abort(failure_);
    } catch (const std::bad_alloc&) {
      device_set_.worlds.front()->abort("out of memory");
    }
    aborted_ = true;
  };
  try {
    aborting_ = std::jthread(abort);
  } catch (const std::exception&) {  // no thread, or no memory for one
    abort();
  }
}

std::string RankPool::where_they_stand() const {
  if (!is_alone()) return device_set_.worlds.front()->roll_call();
  if (made_ < ranks_.size()) return "ranks are being created";
  std::vector<std::string> places;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::string op = ranks_[rank]->stands_at();
    if (!op.empty()) places.push_back(fmt::format("rank {} is at {}", rank, op));
  }
  return join(places);
}

WholeTensors RankPool::whole(Elements Segment::*which) const {
  WholeTensors tensors;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Parameters& parameters = ranks_[i]->parameters();
    const std::unique_ptr<kernels::Stream> stream = device_set_.device(i).make_stream();
    for (const Parameter& parameter : parameters.all()) {
      const Segment& segment = parameters.segments()[parameter.segment];
      const kernels::Tensor shard = segment.own(segment.*which);
      std::vector<float>& tensor = tensors[parameter.name];
      tensor.resize(static_cast<std::size_t>(parameter.slice.whole_elements()),
                    std::numeric_limits<float>::quiet_NaN());
      kernels::by_float_type(shard.type, [&](auto zero) {
        std::vector<decltype(zero)> elements(static_cast<std::size_t>(shard.elements()));
        stream->copy(elements.data(), shard.data, elements.size() * sizeof zero);
        stream->synchronize();
        parameter.slice.for_each([&](std::int64_t own, std::int64_t whole) {
          const std::int64_t element = parameter.first + own - segment.own_first;
          if (element >= 0 && element < segment.own_elements)
            tensor[static_cast<std::size_t>(whole)] = elements[static_cast<std::size_t>(element)];
        });
      });
    }
  }
  return tensors;
}

WholeTensors RankPool::gradients() const {
  WholeTensors tensors = whole(&Segment::gradients);
  const float loss_scale = ranks_.front()->loss_scale();
  for (auto& [name, tensor] : tensors)
    for (float& element : tensor) element /= loss_scale;
  return tensors;
}

WholeTensors RankPool::parameters() const {
  return whole(&Segment::values);
}

WholeTensors RankPool::master_weights() const {
  return state_types(training_.plan).has_master ? whole(&Segment::master) : WholeTensors();
}

double RankPool::tracing_s() {
  constexpr int kMarks = 2000;
  const double before = now_s();
  std::shared_ptr<kernels::Event> last;
  for (int i = 0; i < kMarks; ++i) last = ranks_.front()->mark();
  last->wait();
  const double mark_s = (now_s() - before) / kMarks;
  std::size_t most = 0;
  for (const RankOps& ops : training_.schedule.ranks) most = std::max(most, ops.size());
  return 2 * mark_s * static_cast<double>(most);
}

std::vector<double> RankPool::peak_activation_bytes() {
  const std::vector<double> bytes = peaks_here(&Rank::peak_activation_bytes);
  if (is_alone()) return bytes;
  std::vector<double> all;
  on_every_rank([&](std::size_t) {
    for (const std::vector<double>& rank : gathering_->collect(bytes)) all.push_back(rank.front());
  });
  return all;
}

std::vector<double> RankPool::peaks_here(std::size_t (Rank::*which)() const) const {
  std::vector<double> bytes;
  for (const std::unique_ptr<Rank>& rank : ranks_)
    bytes.push_back(static_cast<double>((rank.get()->*which)()));
  return bytes;
}

std::vector<double> RankPool::peak_offloaded_bytes() const {
  return peaks_here(&Rank::peak_offloaded_bytes);
}

std::vector<double> RankPool::peak_gathered_bytes() const {
  return peaks_here(&Rank::peak_gathered_bytes);
}

}  // namespace rehearse
