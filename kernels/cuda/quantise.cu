// Cast to fp8: a tile is read once and written by rows, by columns or both.
#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

namespace {

constexpr int kTile = 32;

template <typename T>
__device__ inline float value_of(T x) { return to_float(x); }
__device__ inline float value_of(__nv_fp8_e4m3 x) { return static_cast<float>(x); }
__device__ inline float value_of(__nv_fp8_e5m2 x) { return static_cast<float>(x); }

template <typename T>
struct View {
  T* data = nullptr;
  std::int64_t stride = 0;
};
template <typename T>
View<T> view_of(const Tensor& tensor) {
  return {static_cast<T*>(tensor.data), tensor.stride};
}

struct Extent {
  std::int64_t rows = 0, columns = 0;
};

__host__ __device__ constexpr std::int64_t tiles(std::int64_t count) { return (count + kTile - 1) / kTile; }

// Each block loops over tiles and updates the maximum once at the end; updates by every warp would contend.
// Magnitudes are not negative, so their bits have the same order.
template <typename From, typename To>
__global__ void quantize(Extent extent, View<From> in, const float* scale, float* maximum, View<To> rows,
                         View<To> columns) {
  __shared__ float tile[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x) % kTile, first_y = static_cast<int>(threadIdx.x) / kTile;
  const std::int64_t across = tiles(extent.columns), all = tiles(extent.rows) * across;
  const float factor = scale == nullptr ? 1.0F : 1.0F / *scale;
  float largest = 0;
  for (std::int64_t t = blockIdx.x; t < all; t += gridDim.x) {
    const std::int64_t first_row = t / across * kTile, first_column = t % across * kTile;
    for (int y = first_y; y < kTile; y += kThreads / kTile) {
      const std::int64_t r = first_row + y, c = first_column + x;
      if (r >= extent.rows || c >= extent.columns) continue;
      const float value = value_of(in.data[r * in.stride + c]);
      largest = fmaxf(largest, fabsf(value));
      tile[y][x] = value * factor;
      if (rows.data != nullptr) rows.data[r * rows.stride + c] = To(value * factor);
    }
    if (columns.data == nullptr) continue;
    __syncthreads();
    for (int y = first_y; y < kTile; y += kThreads / kTile) {
      const std::int64_t c = first_column + y, r = first_row + x;
      if (r < extent.rows && c < extent.columns) columns.data[c * columns.stride + r] = To(tile[x][y]);
    }
    __syncthreads();  // before the next tile overwrites it
  }
  if (maximum == nullptr) return;
  largest = block_maximum(largest);
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(maximum), __float_as_int(largest));
}

}  // namespace

void run(const Context& context, const Quantize& call) {
  const Extent extent{call.input.rows, call.input.columns};
  if (extent.rows * extent.columns == 0) return;
  constexpr std::int64_t kMaxBlocks = 2048;  // more than run on a GPU at once
  const Type to = call.rows.given() ? call.rows.type : call.columns.given() ? call.columns.type : Type::fp8_e4m3;
  const unsigned blocks = some_blocks(std::min(kMaxBlocks, tiles(extent.rows) * tiles(extent.columns)));
  by_any(call.input.type, [&](auto from) {
    by_fp8(to, [&](auto zero) {
      using From = decltype(from);
      using To = decltype(zero);
      launch(context.stream, "quantise", quantize<From, To>, {blocks}, extent, view_of<From>(call.input),
             floats(call.scale), floats(call.maximum), view_of<To>(call.rows), view_of<To>(call.columns));
    });
  });
}

}  // namespace rehearse::kernels::cuda
