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

int cores_per_gpu() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess) gpus = 1;
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) / std::max(1, gpus));
}

// CUDA's own thread runs the calls; it may have been made by one that was bound to a core.
void unbind_this_thread() {
  static thread_local bool unbound = false;
  if (std::exchange(unbound, true)) return;
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  sched_setaffinity(0, sizeof(all), &all);
}

}  // namespace

void HostCalls::put(const Call& call, cudaStream_t stream) {
  static const int threads = cores_per_gpu();  // which run() must not ask CUDA for
  auto item = std::make_unique<Item>(Item{call, failure_, threads});
  check(cudaLaunchHostFunc(stream, &HostCalls::run, item.get()), "call on the host");
  item.release();
}

void HostCalls::run(void* given) {
  const std::unique_ptr<Item> item(static_cast<Item*>(given));
  unbind_this_thread();
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
