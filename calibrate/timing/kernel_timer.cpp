#include "calibrate/timing/kernel_timer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "calibrate/timing/operands.h"

namespace rehearse {

namespace {

// Number of calls launched before the first one runs. Their kernels, a few a call, fit in a stream's queue:
// CUDA lets it grow to 1,024 before a launch waits.
constexpr int kHeldCalls = 64;

}  // namespace

KernelTimer::KernelTimer(kernels::Device& device, Cache cache, double budget_s, std::function<bool()> stopped)
    : device_(device),
      stream_(device.make_stream()),
      cache_(cache),
      budget_s_(budget_s),
      stopped_(std::move(stopped)) {}

std::vector<double> KernelTimer::time(const Jobs& jobs, const KernelJob& job) {
  const Operands operands(device_, *stream_, jobs, job, least_bytes());
  std::vector<std::vector<kernels::Call>> sets;
  for (std::size_t set = 0; set < operands.sets(); ++set) sets.push_back(operands.calls(set));
  return time_sets(sets);
}

std::vector<double> KernelTimer::launch() {
  const kernels::Buffer number(device_, sizeof(float));
  const kernels::Tensor one(number.data(), kernels::Type::fp32, 1, 1);
  return time_sets({{kernels::Randomise{one, 0, 1, 1}}});
}

double KernelTimer::take_host_launch_s() {
  const double mean = held_launches_ > 0 ? host_s_ / held_launches_ : 0;
  host_s_ = held_launches_ = 0;
  return mean;
}

std::vector<double> KernelTimer::time_sets(const std::vector<std::vector<kernels::Call>>& sets) {
  const int most = std::max(1, kHeldCalls / static_cast<int>(sets.front().size()));
  std::size_t next = 0;
  bool first = true;
  overdue_ = false;
  const auto run = [&](int launches) {
    double seconds = 0;
    for (int left = launches; left > 0; left -= most) {
      const int some = std::min(left, most);
      // The first launch may load libraries and make plans, which wait for the GPU. Other launches of some
      // kernels might do so too; each would wait until its hold is overdue.
      seconds += time_some(sets, next, some, !std::exchange(first, false) && !overdue_);
      next += static_cast<std::size_t>(some);
    }
    return seconds;
  };
  return sample(run, budget_s_, stopped_);
}

// Held, the kernels run at the device's own pace, independent of the host's launch time.
double KernelTimer::time_some(const std::vector<std::vector<kernels::Call>>& sets, std::size_t first,
                              int launches, bool held) {
  using Clock = std::chrono::steady_clock;
  kernels::Hold hold;
  const bool holds = held && stream_->hold(hold);
  const auto begin = stream_->record();
  const Clock::time_point launching = Clock::now();
  for (int i = 0; i < launches; ++i)
    for (const kernels::Call& call : sets[(first + static_cast<std::size_t>(i)) % sets.size()])
      stream_->launch(call);
  const double host_s = std::chrono::duration<double>(Clock::now() - launching).count();
  const auto end = stream_->record();
  hold.end();
  stream_->synchronize();
  overdue_ = overdue_ || hold.overdue();
  if (holds && !overdue_) {
    host_s_ += host_s;
    held_launches_ += launches;
  }
  return end->seconds_since(*begin);
}

}  // namespace rehearse
