// What do kernels of one rank take while the others compute too? Ranks that share a device's memory, cache
// and power slow each other down, so that one is timed among others at work.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "calibrate/timing/jobs.h"
#include "kernels/device.h"

namespace rehearse {

// From here to the end of its life each of the devices runs the jobs' passes over and over: all but the
// optimizer's step, which comes once where passes come many times. What a device cannot run, it leaves out.
class Company {
 public:
  Company(const std::vector<kernels::Device*>& devices, const Jobs& jobs);
  ~Company();
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;

  std::size_t size() const { return threads_.size(); }

 private:
  void work(kernels::Device& device, const Jobs& jobs) const;

  std::atomic<bool> ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace rehearse
