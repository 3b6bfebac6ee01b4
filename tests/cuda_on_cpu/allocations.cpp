// Device memory and pinned host memory. Both come from the host's heap, so that AddressSanitizer sees leaks.
#include "allocations.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "order.h"
#include "stream.h"

namespace {

using namespace cuda_on_cpu;

struct Given {
  std::size_t bytes = 0;
  cudaMemoryType type = cudaMemoryTypeUnregistered;
};

class Allocations {
 public:
  void* give(std::size_t bytes, cudaMemoryType type) {
    const Unseen unseen;
    const std::lock_guard lock(mutex_);
    const bool of_device = type == cudaMemoryTypeDevice;
    void* memory = nullptr;
    if (of_device && bytes > device_bytes() - used_) return nullptr;
    if (posix_memalign(&memory, kAlignment, bytes) != 0) return nullptr;
    if (of_device) used_ += bytes;
    given_[static_cast<std::byte*>(memory)] = {bytes, type};
    return memory;
  }

  bool take_back(void* memory, cudaMemoryType type) {
    {
      const Unseen unseen;
      const std::lock_guard lock(mutex_);
      const auto found = given_.find(static_cast<std::byte*>(memory));
      if (found == given_.end() || found->second.type != type) return false;
      if (type == cudaMemoryTypeDevice) used_ -= found->second.bytes;
      given_.erase(found);
    }
    std::free(memory);
    return true;
  }

  cudaMemoryType type_of(const void* memory) {
    const Unseen unseen;
    const std::lock_guard lock(mutex_);
    const auto* at = static_cast<const std::byte*>(memory);
    auto behind = given_.upper_bound(const_cast<std::byte*>(at));
    if (behind == given_.begin()) return cudaMemoryTypeUnregistered;
    const auto& [first, given] = *std::prev(behind);
    return at < first + given.bytes ? given.type : cudaMemoryTypeUnregistered;
  }

 private:
  std::mutex mutex_;
  std::map<std::byte*, Given> given_;
  std::size_t used_ = 0;  // of the device
};
Allocations& allocations() {
  static auto* const made = new Allocations;
  return *made;
}

// Fresh memory has arbitrary contents: bytes that are NaN in every floating type.
cudaError_t give(void** memory, std::size_t bytes, cudaMemoryType type) {
  constexpr int kGarbage = 0xff;
  constexpr std::size_t kMax = std::size_t{256} << 10;  // larger allocations are workspaces, hardly used
  if (bytes == 0) {
    *memory = nullptr;
    return result(cudaSuccess);
  }
  void* const given = allocations().give(bytes, type);
  if (given == nullptr) return result(cudaErrorMemoryAllocation);
  std::memset(given, kGarbage, std::min(bytes, kMax));
  *memory = given;
  return result(cudaSuccess);
}

bool is_pageable(const void* memory) {
  return allocations().type_of(memory) == cudaMemoryTypeUnregistered;
}

}  // namespace

std::size_t cuda_on_cpu::device_bytes() {
  static const char* const given = std::getenv("CUDA_ON_CPU_BYTES");
  static const std::size_t bytes =
      given == nullptr ? std::size_t{80} << 30 : std::strtoull(given, nullptr, 10);
  return bytes;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return give(memory, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return give(memory, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t /*stream*/) {
  return give(memory, bytes, cudaMemoryTypeDevice);
}

// Waits for the whole device, as CUDA does.
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return result(cudaSuccess);
  drain_all();
  return result(allocations().take_back(memory, cudaMemoryTypeDevice) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaFreeHost(void* memory) {
  if (memory == nullptr) return result(cudaSuccess);
  drain_all();
  return result(allocations().take_back(memory, cudaMemoryTypeHost) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  stream_of(stream).put([memory] { allocations().take_back(memory, cudaMemoryTypeDevice); });
  return result(cudaSuccess);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  attributes->type = allocations().type_of(memory);
  return result(cudaSuccess);
}

namespace {

void copy(void* to, const void* from, std::size_t bytes) {
  reads(from, bytes);
  writes(to, bytes);
  std::memmove(to, from, bytes);
}

}  // namespace

// Pageable memory is read when the copy is put; the caller waits for writes to it. Pinned memory is accessed
// when the stream reaches the copy.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  if (bytes == 0) return result(cudaSuccess);
  CUstream_st& on = stream_of(stream);
  if (is_pageable(from)) {
    const auto* first = static_cast<const std::byte*>(from);
    reads(from, bytes);
    on.put([to, staged = std::vector<std::byte>(first, first + bytes)] {
      copy(to, staged.data(), staged.size());
    });
  } else {
    on.put([to, from, bytes] { copy(to, from, bytes); });
  }
  if (is_pageable(to)) on.drain();
  return result(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return result(cudaSuccess);
  stream_of(stream).put([=] {
    writes(memory, bytes);
    std::memset(memory, value, bytes);
  });
  return result(cudaSuccess);
}
