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
  // cache, so that none is still cached when it is used again.
  KernelTimer(kernels::Device& device, Cache cache, double budget_s, std::function<bool()> stopped);

  // Throws kernels::DeviceError when the device has no such kernel, or no memory for its operands.
  std::vector<double> time(const Jobs& jobs, const KernelJob& job);

  // Least memory of a kernel's operands.
  double least_bytes() const { return cache_ == Cache::cold ? 2 * device_.facts().cache_bytes : 0; }

  // Seconds between the starts of almost empty kernels.
  std::vector<double> launch();

  // The host's mean time to launch a kernel since the last call; 0 where no held kernels were launched.
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
  bool overdue_ = false;  // a launch of this kernel behind a hold waited for the hold's end
};

}  // namespace rehearse
