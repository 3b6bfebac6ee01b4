// Which memory did CUDA give?
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

constexpr std::size_t kAlignment = 256;

std::size_t device_bytes();  // of the whole GPU

}  // namespace cuda_on_cpu
