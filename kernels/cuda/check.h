// CUDA's results as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/device.h"

namespace rehearse::kernels::cuda {

inline void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess)
    throw DeviceError(std::string("CUDA ") + what + ": " + cudaGetErrorString(result));
}

// Of an allocation. OutOfMemory, which says that there is `none`, where there is no more.
inline void check_memory(cudaError_t result, const std::string& none) {
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // or the next one who asks would find it
    throw OutOfMemory(none);
  }
  check(result, "memory");
}

}  // namespace rehearse::kernels::cuda
