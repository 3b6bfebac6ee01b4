// How long does one kernel of a Work take on a device?
#pragma once

#include "calibrate/timing/jobs.h"
#include "calibrate/timing/sampling.h"
#include "kernels/device.h"

namespace rehearse {

enum class Cache : std::uint8_t { cold, warm };

class KernelTimer {
 public:
  // `budget_s`: seconds for one kernel. With Cache::cold the operands rotate through twice the last-level
  // cache, so that none is still there when its turn comes again.
  KernelTimer(kernels::Device& device, Cache cache, double budget_s, std::function<bool()> stopped);

  // kernels::DeviceError when the device has no such kernel, or no memory for its operands.
  std::vector<double> time(const Jobs& jobs, const KernelJob& job);

  // That the operands of a kernel are to fill.
  double least_bytes() const { return cache_ == Cache::cold ? 2 * device_.facts().cache_bytes : 0; }

  // Seconds between the starts of kernels that do next to nothing.
  std::vector<double> launch();

  // What the host took to launch a kernel, in the mean since it was last asked; 0 where it launched none that
  // were held back meanwhile.
  double take_host_launch_s();

 private:
  // `sets` of calls; launch i runs set i modulo their number.
  std::vector<double> time_sets(const std::vector<std::vector<kernels::Call>>& sets);
  double time_some(const std::vector<std::vector<kernels::Call>>& sets, std::size_t first, int launches,
                   bool held);

  kernels::Device& device_;
  std::unique_ptr<kernels::Stream> stream_;
  Cache cache_;
  double budget_s_;
  std::function<bool()> stopped_;
  double host_s_ = 0, held_launches_ = 0;
  bool overdue_ = false;  // of this kernel, what was launched behind a hold waited for its end
};

}  // namespace rehearse
