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

 private:
  // `sets` of calls; launch i runs set i modulo their number.
  std::vector<double> time_sets(const std::vector<std::vector<kernels::Call>>& sets);

  kernels::Device& device_;
  std::unique_ptr<kernels::Stream> stream_;
  Cache cache_;
  double budget_s_;
  std::function<bool()> stopped_;
};

}  // namespace rehearse
