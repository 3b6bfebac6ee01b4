#include "calibrate/timing/message_rounds.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "calibrate/timing/message_timer.h"
#include "calibrate/timing/operands.h"
#include "calibrate/timing/sampling.h"
#include "cost/collectives.h"

namespace rehearse {

namespace {

// The GEMM with the most FLOPs; null: the jobs have none.
const KernelJob* longest_product(const Jobs& jobs) {
  const KernelJob* longest = nullptr;
  for (const KernelJob& job : jobs.kernels) {
    if (job.key.table != SampleKey::Table::gemm) continue;
    if (longest == nullptr || flops(job.kernel) > flops(longest->kernel)) longest = &job;
  }
  return longest;
}

std::int64_t size_of(const KernelJob& product, std::size_t i) {
  return static_cast<std::int64_t>(product.key.size[i]);
}

// A timeout: ends all ranks when none of them calls alive() for too long.
class Patience {
 public:
  Patience(const Ranks& ranks, double seconds)
      : seconds_(seconds), thread_([this, &ranks](const std::stop_token& over) { watch(ranks, over); }) {}
  void alive() { last_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;

  void watch(const Ranks& ranks, const std::stop_token& over) {
    std::unique_lock lock(mutex_);
    constexpr auto kPause = std::chrono::milliseconds(100);
    while (!over.stop_requested()) {
      changed_.wait_for(lock, over, kPause, [] { return false; });
      if (std::chrono::duration<double>(Clock::now() - last_.load()).count() < seconds_) continue;
      for (const auto& world : ranks.worlds)
        world->abort(fmt::format("no message ended within {} s: a rank does not answer", seconds_));
      return;
    }
  }

  double seconds_;
  std::atomic<Clock::time_point> last_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

// One rank's rounds.
class Rounds {
 public:
  Rounds(const MessageRequest& request, std::size_t i, Patience& patience)
      : request_(request),
        patience_(patience),
        device_(request.ranks.device(i)),
        timer_(device_, *request.ranks.worlds[i]),
        is_first_(timer_.rank() == 0) {
    const std::vector<MessageJob>& wanted = request.jobs.messages;
    placed_ = request.ranks.started ? place_messages(wanted, timer_.machines())
                                    : among_first(wanted, request.ranks.size());
  }

  TimedMessages run() {
    find_known();
    for (const PlacedMessage& message : placed_) result_.messages.push_back({message.job, {}});
    for (int round = 0; round < request_.rounds && result_.complete; ++round) time_all();
    if (result_.complete) time_beside();
    if (result_.complete && request_.known_together) time_together();
    return std::move(result_);
  }

 private:
  void find_known() {
    std::vector<bool> known;
    for (const PlacedMessage& message : placed_) known.push_back(is_first_ && request_.known(message.job));
    known_ = timer_.said_by_first(known);
    all_ = static_cast<std::size_t>(std::count(known_.begin(), known_.end(), false)) *
           static_cast<std::size_t>(request_.rounds);
  }

  bool goes_on(const std::string& what) {
    patience_.alive();
    if (timer_.any(request_.stopped())) result_.complete = false;
    if (result_.complete && is_first_ && request_.before) request_.before(what, all_);
    return result_.complete;
  }

  void time_all() {
    for (std::size_t i = 0; i < placed_.size(); ++i) {
      if (known_[i]) continue;
      if (!goes_on(to_string(placed_[i].job))) return;
      const std::vector<double> seconds = timer_.time(placed_[i], request_.budget_s, request_.stopped);
      std::vector<double>& all = result_.messages[i].seconds;
      all.insert(all.end(), seconds.begin(), seconds.end());
    }
  }

  // For each collective, within a machine and across machines: the largest message in the largest group.
  std::vector<const PlacedMessage*> heaviest() const {
    std::map<std::pair<CollectiveOp, bool>, const PlacedMessage*> found;
    const auto size = [](const MessageJob& job) { return std::pair(job.members, job.bytes); };
    for (const PlacedMessage& message : placed_) {
      if (message.job.op == CollectiveOp::send_receive) continue;
      const PlacedMessage*& best = found[{message.job.op, message.job.nodes > 1}];
      if (best == nullptr || size(message.job) > size(best->job)) best = &message;
    }
    std::vector<const PlacedMessage*> all;
    for (const auto& [kind, message] : found) all.push_back(message);
    return all;
  }

  std::vector<const PlacedMessage*> unknown_beside() {
    std::vector<const PlacedMessage*> all = heaviest();
    std::vector<bool> known;
    for (const PlacedMessage* message : all)
      known.push_back(is_first_ && request_.known_beside(message->job));
    known = timer_.said_by_first(known);
    std::size_t i = 0;
    std::erase_if(all, [&](const PlacedMessage*) { return known[i++]; });
    return all;
  }

  static MessageTimer::Sets sets_of(const Operands& operands) {
    MessageTimer::Sets sets;
    for (std::size_t set = 0; set < operands.sets(); ++set) sets.push_back(operands.calls(set));
    return sets;
  }

  void time_together() {
    const KernelJob* product = longest_product(request_.jobs);
    const bool known = timer_.said_by_first({is_first_ && request_.known_together()})[0];
    if (product == nullptr || known) return;
    ++all_;
    if (!goes_on(to_string(product->key) + " on all at once")) return;
    const std::unique_ptr<kernels::Stream> stream = device_.make_stream();
    const Operands operands(device_, *stream, request_.jobs, *product, request_.least_bytes);
    const std::vector<double> seconds =
        timer_.time_together(sets_of(operands), request_.together_s, request_.stopped);
    result_.complete = !timer_.any(request_.stopped());
    if (!result_.complete) return;
    result_.together = {size_of(*product, 0), size_of(*product, 1), size_of(*product, 2), seconds};
  }

  void time_beside() {
    const KernelJob* product = longest_product(request_.jobs);
    const std::vector<const PlacedMessage*> messages = unknown_beside();
    if (product == nullptr || messages.empty()) return;
    const std::unique_ptr<kernels::Stream> stream = device_.make_stream();
    const Operands operands(device_, *stream, request_.jobs, *product, request_.least_bytes);
    const MessageTimer::Sets sets = sets_of(operands);
    all_ += messages.size();
    for (const PlacedMessage* message : messages) {
      const std::string what = to_string(product->key) + " beside " + to_string(message->job);
      if (!goes_on(what)) return;
      const auto [alone_s, beside_s] =
          timer_.time_beside(*message, sets, request_.budget_s, request_.stopped);
      if (beside_s.empty()) {
        result_.notes.push_back(what + ": missing, as the messages end before the product does");
        continue;
      }
      const MessageJob& job = message->job;
      const Timing beside = summarise(beside_s);
      result_.beside.push_back(
          {{message_name(job.op), job.members, job.bytes, beside.seconds, beside.spread, job.nodes},
           size_of(*product, 0),
           size_of(*product, 1),
           size_of(*product, 2),
           summarise(alone_s).seconds});
    }
  }

  const MessageRequest& request_;
  Patience& patience_;
  kernels::Device& device_;
  MessageTimer timer_;
  const bool is_first_;
  std::vector<PlacedMessage> placed_;
  std::vector<bool> known_;
  std::size_t all_ = 0;
  TimedMessages result_;
};

}  // namespace

TimedMessages time_messages(const MessageRequest& request) {
  TimedMessages timed;
  Patience patience(request.ranks, request.timeout_s);
  std::vector<std::unique_ptr<Rounds>> rounds(
      request.ranks.worlds.size());  // none goes before all have ended
  on_each_rank(request.ranks, [&](std::size_t i) {
    rounds[i] = std::make_unique<Rounds>(request, i, patience);
    TimedMessages own = rounds[i]->run();
    if (i == 0) timed = std::move(own);
  });
  return timed;
}

}  // namespace rehearse
