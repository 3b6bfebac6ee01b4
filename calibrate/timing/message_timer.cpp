#include "calibrate/timing/message_timer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>

#include "calibrate/timing/sampling.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxNotes = 256;  // floats that ranks exchange at once

kernels::Tensor vector_of(const kernels::Buffer& memory, std::size_t elements) {
  return {memory.data(), kernels::Type::fp32, 1, static_cast<std::int64_t>(elements)};
}

}  // namespace

// One rank's side of a message's group, with the buffers of one operation.
class MessageTimer::Group {
 public:
  Group(MessageTimer& timer, const PlacedMessage& message, const std::string& name)
      : timer_(timer), job_(message.job), group_(timer.world_.connect(name, message.members)) {
    // nccl-tests' size is that of the full buffer, which only one side of a gather or scatter has.
    const auto part = static_cast<std::int64_t>(std::ceil(job_.bytes / sizeof(float) / job_.members));
    const std::int64_t whole = part * job_.members;
    from_ = buffer(from_memory_, job_.op == CollectiveOp::all_gather ? part : whole);
    to_ = buffer(to_memory_, job_.op == CollectiveOp::reduce_scatter ? part : whole);
    agreed_ = kernels::Buffer(timer_.device_, 2 * sizeof(float));
    timer_.stream_->launch(kernels::Randomise{from_, 0, 1, 1});
    timer_.stream_->launch(kernels::Randomise{to_, 0, 1, 2});
    timer_.stream_->synchronize();
  }

  double run(int launches, bool stop_here) {
    put(1);  // all ranks leave it together
    const auto begin = timer_.stream_->record();
    put(launches);
    const auto end = timer_.stream_->record();
    timer_.stream_->synchronize();
    return agree(end->seconds_since(*begin), stop_here);
  }

  // Times `launches` runs of the calls while `messages` messages run. Negative when the messages ended first.
  double run_concurrently(const Sets& sets, int launches, int messages, bool stop_here) {
    put(1);
    timer_.stream_->synchronize();
    put(messages);
    const auto last_message = timer_.stream_->record();
    const auto begin = timer_.kernels_->record();
    for (int i = 0; i < launches; ++i) {
      for (const kernels::Call& call : sets[next_++ % sets.size()]) timer_.kernels_->launch(call);
    }
    const auto end = timer_.kernels_->record();
    timer_.kernels_->synchronize();
    timer_.stream_->synchronize();
    const bool covered = messages == 0 || last_message->seconds_since(*end) > 0;
    const double seconds = agree(end->seconds_since(*begin), stop_here);
    return agree(covered ? 0 : 1, false) > 0 ? -1 : seconds;
  }

  bool stopped() const { return stopped_; }

 private:
  kernels::Tensor buffer(kernels::Buffer& memory, std::int64_t elements) {
    memory = kernels::Buffer(timer_.device_, static_cast<std::size_t>(elements) * sizeof(float));
    return {memory.data(), kernels::Type::fp32, 1, elements};
  }

  // The mean over the members, so that all of them take the same decision.
  double agree(double value, bool stop_here) {
    std::array<float, 2> own = {static_cast<float>(value), stop_here ? 1.0F : 0.0F};
    kernels::Stream& stream = *timer_.stream_;
    stream.copy(agreed_.data(), own.data(), sizeof own);
    const kernels::Tensor both = vector_of(agreed_, own.size());
    group_->all_reduce(stream, both, both);
    stream.copy(own.data(), agreed_.data(), sizeof own);
    stream.synchronize();
    stopped_ = stopped_ || own[1] > 0;
    return double{own[0]} / group_->size();
  }

  void put(int launches) {
    kernels::Stream& stream = *timer_.stream_;
    for (int i = 0; i < launches; ++i) {
      switch (job_.op) {
        case CollectiveOp::all_reduce:
          group_->all_reduce(stream, from_, to_);
          break;
        case CollectiveOp::all_gather:
          group_->all_gather(stream, from_, to_);
          break;
        case CollectiveOp::reduce_scatter:
          group_->reduce_scatter(stream, from_, to_);
          break;
        case CollectiveOp::all_to_all:
          group_->all_to_all(stream, from_, to_);
          break;
        case CollectiveOp::broadcast:
          group_->broadcast(stream, to_, 0);
          break;
        case CollectiveOp::send_receive:
          if (group_->rank() == 0) group_->send(stream, from_, 1);
          if (group_->rank() == 1) group_->receive(stream, to_, 0);
          break;
        case CollectiveOp::dispatch:
        case CollectiveOp::combine:
          throw kernels::DeviceError("exchanges of rows by DeepEP are no messages");
      }
    }
  }

  MessageTimer& timer_;
  const MessageJob job_;
  std::unique_ptr<kernels::Communicator> group_;
  kernels::Buffer from_memory_, to_memory_, agreed_;
  kernels::Tensor from_, to_;
  std::size_t next_ = 0;
  bool stopped_ = false;
};

MessageTimer::MessageTimer(kernels::Device& device, kernels::World& world)
    : device_(device),
      world_(world),
      stream_(device.make_stream()),
      kernels_(device.make_stream()),
      notes_(device, kMaxNotes * sizeof(float)) {
  std::vector<int> everybody(static_cast<std::size_t>(world.size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  all_ = world.connect("all that are timed", everybody);
  machines_ = machines_of(*all_, device_, *stream_);
}

MessageTimer::~MessageTimer() = default;

// The root's values; the sizes on other ranks only limit their number.
std::vector<double> MessageTimer::shared(const std::vector<double>& values, int root) {
  std::vector<double> all;
  std::vector<float> notes(kMaxNotes);
  for (std::size_t first = 0;; first += kMaxNotes - 1) {
    const std::size_t own = std::min(values.size() - std::min(values.size(), first), kMaxNotes);
    notes[0] = static_cast<float>(own);
    for (std::size_t i = 0; i + 1 < kMaxNotes && i < own; ++i)
      notes[i + 1] = static_cast<float>(values[first + i]);
    stream_->copy(notes_.data(), notes.data(), notes_.bytes());
    all_->broadcast(*stream_, vector_of(notes_, kMaxNotes), root);
    stream_->copy(notes.data(), notes_.data(), notes_.bytes());
    stream_->synchronize();
    const auto count = static_cast<std::size_t>(notes[0]);
    const std::size_t here = std::min(count, kMaxNotes - 1);
    all.insert(all.end(), notes.begin() + 1, notes.begin() + 1 + static_cast<std::ptrdiff_t>(here));
    if (count < kMaxNotes) return all;
  }
}

bool MessageTimer::any(bool here) {
  const auto value = here ? 1.0F : 0.0F;
  float most = 0;
  stream_->copy(notes_.data(), &value, sizeof value);
  all_->all_reduce(*stream_, vector_of(notes_, 1), vector_of(notes_, 1), kernels::Reduction::maximum);
  stream_->copy(&most, notes_.data(), sizeof most);
  stream_->synchronize();
  return most > 0;
}

std::vector<bool> MessageTimer::said_by_first(const std::vector<bool>& flags) {
  const std::vector<double> said = shared({flags.begin(), flags.end()}, 0);
  return {said.begin(), said.end()};
}

bool MessageTimer::join(const PlacedMessage& message) {
  const std::string name = "timed " + std::to_string(joined_++);
  if (std::find(message.members.begin(), message.members.end(), rank()) == message.members.end())
    return false;
  group_ = std::make_unique<Group>(*this, message, name);
  return true;
}

std::vector<double> MessageTimer::time(const PlacedMessage& message, double budget_s,
                                       const std::function<bool()>& stopped) {
  std::vector<double> seconds;
  if (join(message)) {
    seconds = sample([&](int launches) { return group_->run(launches, stopped()); }, budget_s,
                     [&] { return group_->stopped(); });
  }
  seconds = shared(seconds, message.members.front());
  group_.reset();
  return seconds;
}

MessageTimer::Beside MessageTimer::time_beside(const PlacedMessage& message, const Sets& sets,
                                               double budget_s, const std::function<bool()>& stopped) {
  Beside both;
  if (join(message)) {
    const auto stop = [&] { return group_->stopped(); };
    const auto message_s =
        summarise(sample([&](int launches) { return group_->run(launches, stopped()); }, budget_s / 4, stop))
            .seconds;
    both.alone_s = sample(
        [&](int launches) { return group_->run_concurrently(sets, launches, 0, stopped()); }, budget_s, stop);
    const double kernels_s = summarise(both.alone_s).seconds;
    both.beside_s = sample_beside(
        [&](int launches, double factor) {
          const double messages = std::ceil(factor * launches * kernels_s / message_s);
          return group_->run_concurrently(sets, launches, static_cast<int>(messages) + 1, stopped());
        },
        budget_s, stop);
  }
  const int root = message.members.front();
  both = {shared(both.alone_s, root), shared(both.beside_s, root)};
  group_.reset();
  return both;
}

std::vector<double> MessageTimer::told_by_all(double value) {
  const auto own = static_cast<float>(value);
  std::vector<float> all(static_cast<std::size_t>(world_.size()));
  const kernels::Buffer from(device_, sizeof own), to(device_, all.size() * sizeof own);
  stream_->copy(from.data(), &own, sizeof own);
  all_->all_gather(*stream_, vector_of(from, 1), vector_of(to, all.size()));
  stream_->copy(all.data(), to.data(), to.bytes());
  stream_->synchronize();
  return {all.begin(), all.end()};
}

std::vector<double> MessageTimer::time_together(const Sets& sets, double duration_s,
                                                const std::function<bool()>& stopped) {
  any(false);  // all ranks leave it together
  std::vector<double> seconds;
  for (double passed = 0; seconds.empty() || (passed < duration_s && !stopped()); passed += seconds.back()) {
    const auto begin = kernels_->record();
    for (const auto& set : sets)
      for (const kernels::Call& call : set) kernels_->launch(call);
    const auto end = kernels_->record();
    kernels_->synchronize();
    seconds.push_back(end->seconds_since(*begin));
  }
  seconds.erase(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2));
  return told_by_all(summarise(seconds).seconds / static_cast<double>(sets.size()));
}

void on_each_rank(const Ranks& ranks, const std::function<void(std::size_t)>& body) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto guarded = [&](std::size_t i) {
    try {
      body(i);
    } catch (const std::exception& error) {
      {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
      ranks.worlds[i]->abort(error.what());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < ranks.worlds.size(); ++i) threads.emplace_back([&guarded, i] { guarded(i); });
    guarded(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rehearse
