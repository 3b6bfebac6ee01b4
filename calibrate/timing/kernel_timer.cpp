#include "calibrate/timing/kernel_timer.h"

#include "calibrate/timing/operands.h"

namespace rehearse {

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

std::vector<double> KernelTimer::time_sets(const std::vector<std::vector<kernels::Call>>& sets) {
  std::size_t next = 0;
  const auto run = [&](int launches) {
    const auto begin = stream_->record();
    for (int i = 0; i < launches; ++i) {
      for (const kernels::Call& call : sets[next]) stream_->launch(call);
      next = (next + 1) % sets.size();
    }
    const auto end = stream_->record();
    stream_->synchronize();
    return end->seconds_since(*begin);
  };
  return sample(run, budget_s_, stopped_);
}

}  // namespace rehearse
