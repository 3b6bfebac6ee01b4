// What are the sums of a matrix's columns?
#pragma once

#include "kernels/cuda/lanes.cuh"

namespace rehearse::kernels::cuda {

constexpr int kColumnPacks = 32, kColumnRows = kThreads / kColumnPacks;  // of a block at a time

// A block takes 32 packs of columns and a stretch of rows, eight at a time, then sums over the eight.
// add(row, column, sums) adds values of N columns from `column` on. The sums are added to `totals` where
// given.
template <int N, int Numbers, typename Add>
__device__ void add_up_columns(std::int64_t rows, std::int64_t columns, float* const (&totals)[Numbers],
                               const Add& add) {
  __shared__ float part[Numbers][kThreads * N];
  const int lane = threadIdx.x % kColumnPacks, first_row = threadIdx.x / kColumnPacks;
  const std::int64_t first = std::int64_t{blockIdx.x} * kColumnPacks * N, column = first + lane * N;
  float sums[Numbers][N] = {};
  for (std::int64_t r = blockIdx.y * kColumnRows + first_row; column < columns && r < rows;
       r += std::int64_t{gridDim.y} * kColumnRows)
    add(r, column, sums);
  for (int number = 0; number < Numbers; ++number)  // neighbours in different banks
    for (int i = 0; i < N; ++i) part[number][(first_row * N + i) * kColumnPacks + lane] = sums[number][i];
  __syncthreads();
  const int mine = static_cast<int>(threadIdx.x);
  if (mine >= kColumnPacks * N || first + mine >= columns) return;
  for (int number = 0; number < Numbers; ++number) {
    if (totals[number] == nullptr) continue;
    float total = 0;
    for (int row = 0; row < kColumnRows; ++row) total += part[number][(row * N + mine % N) * kColumnPacks + mine / N];
    atomicAdd(totals[number] + first + mine, total);
  }
}

// Number of blocks for such sums: about 64 rows each.
template <int N>
dim3 blocks_of_columns(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kRows = 64, kMax = 128, kColumns = kColumnPacks * N;
  return {static_cast<unsigned>((columns + kColumns - 1) / kColumns),
          static_cast<unsigned>(std::clamp<std::int64_t>(rows / kRows, 1, kMax))};
}

}  // namespace rehearse::kernels::cuda
