// What do kernels of one rank lose while the others compute too? Ranks on parts of one GPU share its memory,
// its cache and its power.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "calibrate/timing/kernel_timer.h"
#include "cost/measurement.h"

namespace rehearse {

// Passes, each kernel as often as a microbatch meets it in all stages together; or the optimizer's step.
enum class AtWorkOn : std::uint8_t { passes, step };

// From here to the end of its life each of the devices runs the jobs' kernels over and over. What a device
// cannot run, it leaves out.
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

// Of each table of the profile: the time of its kernels while `others` do what they do, over that of
// `alone_s`, by job, each as often as it is used. Jobs of no time alone are left out. `before` is told of
// each timing, and ends them all by false.
Slowdowns concurrent_slowdowns(const std::vector<kernels::Device*>& others, const Jobs& jobs,
                               const std::vector<double>& alone_s, KernelTimer& timer,
                               const std::function<bool(const KernelJob&)>& before);

}  // namespace rehearse
