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

}  // namespace rehearse::kernels::cuda
