// Memory of one stream that grows with what is asked of it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace rehearse::kernels::cuda {

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // At least so many bytes, aligned to 256, for what is put on `stream` next: always the same stream, whose
  // order keeps apart what uses it. What was handed out before may go. OutOfMemory when there is no more.
  void* at_least(std::size_t bytes, cudaStream_t stream);
  void release(cudaStream_t stream);

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rehearse::kernels::cuda
