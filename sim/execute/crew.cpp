#include "execute/crew.h"

#include <fmt/format.h>

#include <algorithm>
#include <latch>
#include <limits>
#include <thread>

#include "execute/cores.h"

namespace rehearse {

namespace {

const Training& require_executable(const Training& training) {
  std::vector<Violation> violations = not_executable(training.model, training.plan);
  if (!violations.empty()) throw InputError(std::move(violations));
  return training;
}

}  // namespace

Crew::Crew(Training training, Watch watch)
    : training_(std::move(training)),
      watch_(std::move(watch)),
      tasks_(derive_tasks(require_executable(training_).schedule, training_.plan, {Fold::none})),
      device_(kernels::open_cpu()),
      worlds_(kernels::open_memory_worlds(training_.plan.gpus())),
      ranks_(worlds_.size()) {
  on_every_rank([this](std::size_t rank) {
    ranks_[rank] = std::make_unique<Rank>(training_, *device_, *worlds_[rank]);
  });
}

StepResult Crew::step() {
  const std::int64_t step = steps_++;
  on_every_rank([&](std::size_t rank) { ranks_[rank]->prepare(step); });
  const std::shared_ptr<kernels::Event> origin = ranks_.front()->mark();
  origin->wait();
  std::latch begin(static_cast<std::ptrdiff_t>(ranks_.size()));
  on_every_rank([&](std::size_t rank) {
    begin.arrive_and_wait();
    ranks_[rank]->run();
  });
  StepResult result;
  const RankGrid grid(training_.plan);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Coordinates at = grid.coordinates(static_cast<int>(rank));
    if (at[static_cast<std::size_t>(Axis::tp)] == 0) result.loss += ranks_[rank]->loss();
  }
  result.gradient_norm = ranks_.front()->gradient_norm();
  result.timeline = timeline(*origin);
  return result;
}

void Crew::on_every_rank(const std::function<void(std::size_t rank)>& work) {
  std::atomic<std::size_t> done = 0;
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    threads.emplace_back([&, rank] {
      pin_to_core(rank);
      try {
        work(rank);
      } catch (const std::exception& error) {
        give_up(error.what(), false);
      }
      ++done;
    });
  }
  watch_over([&] { return done == threads.size(); });
  threads.clear();
  if (interrupted_) throw Interrupted(failure_);
  if (!failure_.empty()) throw kernels::DeviceError(failure_);
}

void Crew::watch_over(const std::function<bool()>& all_done) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kAsk = std::chrono::milliseconds(2);
  const auto ended = [this] {
    std::size_t sum = 0;
    for (const std::unique_ptr<Rank>& rank : ranks_) sum += rank ? rank->ops_ended() : 0;
    return sum;
  };
  Clock::time_point changed = Clock::now();
  for (std::size_t before = 0; !all_done(); std::this_thread::sleep_for(kAsk)) {
    if (watch_.stopped && watch_.stopped()) give_up("interrupted", true);
    if (steps_ == 0) continue;  // ranks are being made
    const std::size_t now = ended();
    if (now != before) changed = Clock::now();
    before = now;
    if (std::chrono::duration<double>(Clock::now() - changed).count() > watch_.patience_s)
      give_up(fmt::format("no op has ended for {} s: {}", watch_.patience_s, where_they_stand()), false);
  }
}

void Crew::give_up(const std::string& reason, bool interrupted) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = reason;
    interrupted_ = interrupted;
  }
  worlds_.front()->abort(reason);
}

std::string Crew::where_they_stand() const {
  std::vector<std::string> places;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::string op = ranks_[rank]->stands_at();
    if (!op.empty()) places.push_back(fmt::format("rank {} stands at {}", rank, op));
  }
  return join(places);
}

// From the first op's beginning. A message begins when both sides are there, a collective when all are; ops
// of the compute stream each begin by themselves.
Timeline Crew::timeline(kernels::Event& origin) const {
  Timeline timeline;
  for (const Instance& instance : tasks_.instances) {
    const std::size_t ops = ranks_[static_cast<std::size_t>(instance.rank)]->ops();
    timeline.ranks.push_back({instance, std::vector<Span>(ops)});
  }
  const auto for_each_op = [&](const auto& visit) {
    for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
      const Rank& rank = *ranks_[static_cast<std::size_t>(timeline.ranks[i].instance.rank)];
      for (std::size_t op = 0; op < rank.ops(); ++op)
        visit(rank, op, tasks_.task(static_cast<int>(i), op), timeline.ranks[i].spans[op]);
    }
  };
  std::vector<double> meets(tasks_.size(), 0);  // when the last of a task's ranks came
  for_each_op([&](const Rank& rank, std::size_t op, TaskId task, Span& span) {
    span = {rank.began(op, origin), rank.ended(op, origin)};
    meets[task] = std::max(meets[task], span.begin);
  });
  double first = std::numeric_limits<double>::infinity();
  for_each_op([&](const Rank& rank, std::size_t op, TaskId task, Span& span) {
    if (rank.op(op).stream != Stream::compute) span.begin = meets[task];
    first = std::min(first, span.begin);
  });
  for_each_op([&](const Rank& /*rank*/, std::size_t /*op*/, TaskId /*task*/, Span& span) {
    span = {span.begin - first, span.end - first};
  });
  return timeline;
}

WholeTensors Crew::whole(Elements Segment::*which) const {
  WholeTensors tensors;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    const std::vector<Segment>& segments = rank->parameters().segments();
    for (const Parameter& parameter : rank->parameters().all()) {
      const Segment& segment = segments[parameter.segment];
      const kernels::Tensor shard = segment.own(segment.*which);
      const auto* elements = static_cast<const float*>(shard.data);
      std::vector<float>& tensor = tensors[parameter.name];
      tensor.resize(static_cast<std::size_t>(parameter.slice.whole_elements()));
      parameter.slice.for_each([&](std::int64_t own, std::int64_t whole) {
        const std::int64_t element = parameter.first + own - segment.own_first;
        if (element >= 0 && element < segment.own_elements)
          tensor[static_cast<std::size_t>(whole)] = elements[element];
      });
    }
  }
  return tensors;
}

WholeTensors Crew::gradients() const {
  return whole(&Segment::gradients);
}

WholeTensors Crew::parameters() const {
  return whole(&Segment::values);
}

std::vector<double> Crew::peak_activation_bytes() const {
  std::vector<double> bytes;
  for (const std::unique_ptr<Rank>& rank : ranks_)
    bytes.push_back(static_cast<double>(rank->peak_activation_bytes()));
  return bytes;
}

std::vector<double> Crew::peak_gathered_bytes() const {
  std::vector<double> bytes;
  for (const std::unique_ptr<Rank>& rank : ranks_)
    bytes.push_back(static_cast<double>(rank->peak_gathered_bytes()));
  return bytes;
}

}  // namespace rehearse
