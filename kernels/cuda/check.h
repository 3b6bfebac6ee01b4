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

// Checks an allocation. Throws OutOfMemory with the message `none` where no memory is left.
inline void check_memory(cudaError_t result, const std::string& none) {
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error, or the next check would report it
    throw OutOfMemory(none);
  }
  check(result, "memory");
}

}  // namespace rehearse::kernels::cuda
