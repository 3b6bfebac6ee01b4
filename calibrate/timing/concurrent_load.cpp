#include "calibrate/timing/concurrent_load.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "calibrate/timing/operands.h"

namespace rehearse {

namespace {

bool is_of(const Jobs& jobs, const KernelJob& job, AtWorkOn what) {
  return is_of_step(jobs, job) == (what == AtWorkOn::step);
}

// Calls of all kernels; uses of one kernel are spread over the round.
class Round {
 public:
  Round(kernels::Device& device, const Jobs& jobs, AtWorkOn what) : stream_(device.make_stream()) {
    for (const KernelJob& job : jobs.kernels) {
      if (is_of(jobs, job, what)) add(device, jobs, job);
    }
    double most = 0;
    for (const Used& used : kernels_) most = std::max(most, used.uses);
    for (double use = 0; use < most; ++use) {
      for (const Used& used : kernels_) {
        if (use < used.uses) calls_.insert(calls_.end(), used.calls.begin(), used.calls.end());
      }
    }
  }

  std::shared_ptr<kernels::Event> launch() {
    for (const kernels::Call& call : calls_) stream_->launch(call);
    return stream_->record();
  }

  void end() { stream_->synchronize(); }

 private:
  struct Used {
    std::unique_ptr<Operands> operands;
    std::vector<kernels::Call> calls;
    double uses = 0;
  };

  void add(kernels::Device& device, const Jobs& jobs, const KernelJob& job) {
    try {
      auto operands = std::make_unique<Operands>(device, *stream_, jobs, job, 0);
      std::vector<kernels::Call> calls = operands->calls(0);
      for (const kernels::Call& call : calls) stream_->launch(call);
      stream_->synchronize();
      kernels_.push_back({std::move(operands), std::move(calls), job.uses});
    } catch (const kernels::DeviceError&) {
      // The kernel's own timing reports the error.
    }
  }

  std::unique_ptr<kernels::Stream> stream_;
  std::vector<Used> kernels_;
  std::vector<kernels::Call> calls_;
};

using Table = std::map<std::string, double>;

struct Sums {
  double alone_s = 0, beside_s = 0;
};

Table& table_of(Slowdowns& slowdowns, const KernelJob& job, AtWorkOn what) {
  if (job.key.table == SampleKey::Table::gemm) return slowdowns.gemm;
  if (job.key.table == SampleKey::Table::attention) return slowdowns.attention;
  return what == AtWorkOn::step ? slowdowns.step : slowdowns.stream;
}

std::string name_of(const KernelJob& job) {
  if (job.key.table != SampleKey::Table::attention) return job.key.name;
  return std::get<Attention>(job.kernel.what).backward ? "backward" : "forward";
}

}  // namespace

ConcurrentLoad::ConcurrentLoad(const std::vector<kernels::Device*>& devices, const Jobs& jobs,
                               AtWorkOn what) {
  for (kernels::Device* device : devices)
    threads_.emplace_back([this, device, &jobs, what] { work(*device, jobs, what); });
}

ConcurrentLoad::~ConcurrentLoad() {
  ended_ = true;
  for (std::thread& thread : threads_) thread.join();
}

// One round is always queued, so that the device is never idle.
void ConcurrentLoad::work(kernels::Device& device, const Jobs& jobs, AtWorkOn what) const {
  try {
    Round round(device, jobs, what);
    std::shared_ptr<kernels::Event> before = round.launch();
    while (!ended_) {
      const std::shared_ptr<kernels::Event> next = round.launch();
      before->wait();
      before = next;
    }
    round.end();
  } catch (const kernels::DeviceError&) {
    // This device adds no load then; timings continue without it.
  }
}

Slowdowns concurrent_slowdowns(const std::vector<kernels::Device*>& others, const Jobs& jobs,
                               const std::vector<double>& alone_s, KernelTimer& timer,
                               const std::function<bool(const KernelJob&)>& before) {
  Slowdowns slowdowns;
  slowdowns.others = static_cast<std::int64_t>(others.size());
  for (const AtWorkOn what : {AtWorkOn::passes, AtWorkOn::step}) {
    const ConcurrentLoad company(others, jobs, what);
    std::map<std::pair<Table*, std::string>, Sums> sums;
    for (std::size_t i = 0; i < jobs.kernels.size(); ++i) {
      const KernelJob& job = jobs.kernels[i];
      if (!is_of(jobs, job, what) || !(alone_s[i] > 0)) continue;
      if (!before(job)) return slowdowns;
      try {
        const double seconds = summarise(timer.time(jobs, job)).seconds;
        Sums& sum = sums[{&table_of(slowdowns, job, what), name_of(job)}];
        sum.alone_s += job.uses * alone_s[i];
        sum.beside_s += job.uses * seconds;
      } catch (const kernels::DeviceError&) {
        // Too little memory for it beside the others.
      }
    }
    // Concurrency makes no kernel faster: below 1 the isolated timing was disturbed.
    for (const auto& [where, sum] : sums)
      (*where.first)[where.second] = std::max(1.0, sum.beside_s / sum.alone_s);
  }
  return slowdowns;
}

}  // namespace rehearse
