#include "kernels/cuda/host_call.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/widen.h"
#include "kernels/cuda/check.h"

namespace rehearse::kernels::cuda {

namespace {

// Cores that this process may use: a launcher may have restricted them.
int cores_per_gpu() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess) gpus = 1;
  const int share = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) / std::max(1, gpus);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  return std::max(1, known ? std::min(share, CPU_COUNT(&allowed)) : share);
}

}  // namespace

void HostCalls::put(const Call& call, cudaStream_t stream) {
  static const int threads = cores_per_gpu();  // run() must not call CUDA
  auto item = std::make_unique<Item>(Item{call, failure_, threads});
  check(cudaLaunchHostFunc(stream, &HostCalls::run, item.get()), "call on the host");
  item.release();
}

void HostCalls::run(void* given) {
  const std::unique_ptr<Item> item(static_cast<Item*>(given));
  cpu::team = item->threads;
  try {
    cpu::run_widened(item->call);
  } catch (...) {
    const std::lock_guard lock(item->failure->mutex);
    if (!item->failure->first) item->failure->first = std::current_exception();
  }
}

std::exception_ptr HostCalls::take_failure() {
  const std::lock_guard lock(failure_->mutex);
  return std::exchange(failure_->first, nullptr);
}

}  // namespace rehearse::kernels::cuda
