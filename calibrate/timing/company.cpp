#include "calibrate/timing/company.h"

#include <memory>

#include "calibrate/timing/operands.h"

namespace rehearse {

namespace {

bool is_of_a_pass(const Jobs& jobs, const KernelJob& job) {
  return jobs.blocks[job.block].name != "optimizer";
}

class Pass {
 public:
  Pass(kernels::Device& device, const Jobs& jobs) : stream_(device.make_stream()) {
    for (const KernelJob& job : jobs.kernels) {
      if (is_of_a_pass(jobs, job)) add(device, jobs, job);
    }
  }

  std::shared_ptr<kernels::Event> launch() {
    for (const kernels::Call& call : calls_) stream_->launch(call);
    return stream_->record();
  }

  void end() { stream_->synchronize(); }

 private:
  void add(kernels::Device& device, const Jobs& jobs, const KernelJob& job) {
    try {
      auto operands = std::make_unique<Operands>(device, *stream_, jobs, job, 0);
      const std::vector<kernels::Call> calls = operands->calls(0);
      for (const kernels::Call& call : calls) stream_->launch(call);
      stream_->synchronize();
      calls_.insert(calls_.end(), calls.begin(), calls.end());
      operands_.push_back(std::move(operands));
    } catch (const kernels::DeviceError&) {
      // The one who times it says so.
    }
  }

  std::unique_ptr<kernels::Stream> stream_;
  std::vector<std::unique_ptr<Operands>> operands_;
  std::vector<kernels::Call> calls_;
};

}  // namespace

Company::Company(const std::vector<kernels::Device*>& devices, const Jobs& jobs) {
  for (kernels::Device* device : devices)
    threads_.emplace_back([this, device, &jobs] { work(*device, jobs); });
}

Company::~Company() {
  ended_ = true;
  for (std::thread& thread : threads_) thread.join();
}

// One pass is always behind the one that runs, so that the device never rests.
void Company::work(kernels::Device& device, const Jobs& jobs) const {
  try {
    Pass pass(device, jobs);
    std::shared_ptr<kernels::Event> before = pass.launch();
    while (!ended_) {
      const std::shared_ptr<kernels::Event> next = pass.launch();
      before->wait();
      before = next;
    }
    pass.end();
  } catch (const kernels::DeviceError&) {
    // It keeps no company then: what is timed is timed all the same.
  }
}

}  // namespace rehearse
