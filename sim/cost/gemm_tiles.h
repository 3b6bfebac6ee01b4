// How long does a GEMM take that the multiprocessors compute tile by tile?
#pragma once

#include <algorithm>
#include <cmath>

#include "cost/roofline.h"

namespace rehearse {

// The side of the smallest tiles that run near the peak. Smaller tiles reuse too little of the data that the
// cache delivers. Larger tiles of cuBLAS are multiples of it (NVIDIA, Matrix Multiplication Background User's
// Guide).
constexpr double kTile = 128;
constexpr double kMaxParts = 16;     // split-K: parts of the sum over k
constexpr double kPartialBytes = 8;  // each part's sum of an element of C: fp32, written and read again

inline double tiles_of(double m, double n, double batch) {
  return batch * std::ceil(m / kTile) * std::ceil(n / kTile);
}

// Seconds at peak rates. Whole tiles run in waves that end together; then the results are written. k is split
// into `most` parts at most, where that fills the waves better. Tiles of other sizes fill the last wave
// better, by up to its whole idle part; half of that counts. Never below gemm_bound().
inline double tiled_bound(const Roofline& roof, double multiprocessors, double m, double n, double k,
                          double batch, double most = kMaxParts) {
  const double one_k_s = 2 * kTile * kTile * multiprocessors / roof.peak_flops;  // of one tile
  const double element_s = batch * m * n / roof.memory_bandwidth;  // for a byte of each element of C
  const double most_parts = std::max(1.0, std::min(most, k / kTile));
  double least = INFINITY;
  for (double parts = 1; parts <= most_parts; ++parts) {
    const double waves = parts * tiles_of(m, n, batch) / multiprocessors;
    const double filled = (std::max(1.0, waves) + std::ceil(waves)) / 2;
    const double partial_bytes = parts > 1 ? parts * kPartialBytes : 0;
    least = std::min(least, filled * one_k_s * std::ceil(k / parts) + partial_bytes * element_s);
  }
  return std::max(least + roof.result_bytes * element_s, gemm_bound(roof, m, n, k, batch));
}

}  // namespace rehearse
