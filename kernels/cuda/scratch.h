// Memory of one stream that grows on demand.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace rehearse::kernels::cuda {

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // At least `bytes`, aligned to 256, for the next work on `stream`. The stream must always be the same, as
  // its order separates the uses. Earlier results become invalid. OutOfMemory when there is no more.
  void* at_least(std::size_t bytes, cudaStream_t stream);
  void release(cudaStream_t stream);

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rehearse::kernels::cuda
