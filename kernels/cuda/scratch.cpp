#include "kernels/cuda/scratch.h"

#include <string>

#include "kernels/cuda/check.h"

namespace rehearse::kernels::cuda {

void* Scratch::at_least(std::size_t bytes, cudaStream_t stream) {
  if (bytes <= bytes_) return memory_;
  release(stream);
  const cudaError_t result =
      cudaMallocAsync(&memory_, bytes, stream);  // in the stream's order: nothing blocks
  check_memory(result, "the GPU has no " + std::to_string(bytes) + " bytes of workspace left");
  bytes_ = bytes;
  return memory_;
}

void Scratch::release(cudaStream_t stream) {
  if (bytes_ > 0) cudaFreeAsync(memory_, stream);
  memory_ = nullptr;
  bytes_ = 0;
}

}  // namespace rehearse::kernels::cuda
