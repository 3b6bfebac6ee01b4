// Random bits by counter: the same number for the same (seed, index) on every device.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define REHEARSE_ON_DEVICE __host__ __device__
#else
#define REHEARSE_ON_DEVICE
#endif

namespace rehearse::kernels {

// Philox-2x32 with ten rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
REHEARSE_ON_DEVICE inline std::uint32_t philox(std::uint64_t seed, std::uint64_t index) {
  auto left = static_cast<std::uint32_t>(index);
  auto right = static_cast<std::uint32_t>(index >> 32) ^ static_cast<std::uint32_t>(seed >> 32);
  auto key = static_cast<std::uint32_t>(seed);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product = std::uint64_t{0xD256D193U} * left;
    left = static_cast<std::uint32_t>(product >> 32) ^ key ^ right;
    right = static_cast<std::uint32_t>(product);
    key += 0x9E3779B9U;
  }
  return left;
}

// In [0, 1).
REHEARSE_ON_DEVICE inline float philox_uniform(std::uint64_t seed, std::uint64_t index) {
  return static_cast<float>(philox(seed, index) >> 8) * 0x1p-24F;
}

}  // namespace rehearse::kernels
