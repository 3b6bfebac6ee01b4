// Which launches does a GPU refuse?
#include <cuda_runtime.h>

#include <map>
#include <mutex>

#include "block.h"
#include "gpu.h"
#include "order.h"
#include "stream.h"

namespace {

using namespace cuda_on_cpu;

std::mutex mutex;
std::map<const void*, std::size_t>& allowed() {  // shared bytes, by kernel
  static auto* const made = new std::map<const void*, std::size_t>;
  return *made;
}

bool is_possible(const cudaLaunchConfig_t& config, const void* kernel) {
  constexpr unsigned kMaxThreads = 1024, kMaxDeep = 64, kMaxAlong = 0x7fffffffU, kMaxDown = 65535;
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const Unseen unseen;
  const std::lock_guard lock(mutex);
  const auto known = allowed().find(kernel);
  return threads > 0 && threads <= kMaxThreads && block.z <= kMaxDeep && grid.x > 0 && grid.y > 0 &&
         grid.z > 0 && grid.x <= kMaxAlong && grid.y <= kMaxDown && grid.z <= kMaxDown &&
         config.dynamicSmemBytes <= (known == allowed().end() ? std::size_t{kSharedBytes} : known->second);
}

}  // namespace

cudaError_t cuda_on_cpu::launch(const cudaLaunchConfig_t& config, const void* kernel,
                                std::function<void()> thread) {
  if (!is_possible(config, kernel)) return result(cudaErrorInvalidConfiguration);
  stream_of(config.stream).put([config, run = std::move(thread)] { run_blocks(config, run); });
  return result(cudaSuccess);
}

cudaError_t cuda_on_cpu::allow_shared(const void* kernel, int bytes) {
  if (bytes < 0 || bytes > kMaxSharedBytes) return result(cudaErrorInvalidValue);
  const Unseen unseen;
  const std::lock_guard lock(mutex);
  allowed()[kernel] = static_cast<std::size_t>(bytes);
  return result(cudaSuccess);
}

long long clock64() {
  return static_cast<long long>(1e9 * now_s());
}
