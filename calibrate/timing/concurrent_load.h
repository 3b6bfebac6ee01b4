// How much slower are kernels of one rank while the others compute too? Ranks on partitions of one GPU share
// its memory, its cache and its power.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "calibrate/timing/kernel_timer.h"
#include "cost/measurement.h"

namespace rehearse {

// Passes (each kernel as often as a microbatch uses it over all stages), or the optimizer's step.
enum class AtWorkOn : std::uint8_t { passes, step };

// During its lifetime, each device runs the jobs' kernels repeatedly. Kernels that a device cannot run are
// omitted.
class ConcurrentLoad {
 public:
  ConcurrentLoad(const std::vector<kernels::Device*>& devices, const Jobs& jobs, AtWorkOn what);
  ~ConcurrentLoad();
  ConcurrentLoad(const ConcurrentLoad&) = delete;
  ConcurrentLoad& operator=(const ConcurrentLoad&) = delete;

 private:
  void work(kernels::Device& device, const Jobs& jobs, AtWorkOn what) const;

  std::atomic<bool> ended_ = false;
  std::vector<std::thread> threads_;
};

// For each table of the profile: the time of its kernels while `others` run their load, over `alone_s`.
// Kernels are weighted by their uses. Jobs without an isolated time are omitted. `before` is called before
// each timing; false ends them all.
Slowdowns concurrent_slowdowns(const std::vector<kernels::Device*>& others, const Jobs& jobs,
                               const std::vector<double>& alone_s, KernelTimer& timer,
                               const std::function<bool(const KernelJob&)>& before);

}  // namespace rehearse
