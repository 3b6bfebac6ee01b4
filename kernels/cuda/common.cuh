// Shared by all CUDA kernel files: element types, rows of a tensor, sums over a block.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/cuda/check.h"

namespace rehearse::kernels::cuda {

constexpr int kThreads = 256;  // of almost every block

struct Grid {
  dim3 blocks;
  unsigned threads = kThreads;   // in each block
  std::size_t shared_bytes = 0;  // of each block, besides the kernel's static shared memory
};

// Launches one of our kernels. `what` names it in the error when it cannot start.
template <typename... Parameters, typename... Arguments>
void launch(cudaStream_t stream, const char* what, void (*kernel)(Parameters...), const Grid& grid,
            const Arguments&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  const cudaError_t result = cudaLaunchKernelEx(&config, kernel, arguments...);
  if (result != cudaSuccess) cudaGetLastError();  // clears the error, or the next check would report it
  check(result, what);
}

// Arithmetic is fp32; memory holds T.
__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float to_float(__half x) { return __half2float(x); }
template <typename T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) { return x; }
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) { return __float2bfloat16(x); }
template <>
__device__ inline __half from_float<__half>(float x) { return __float2half(x); }

// body(T{}) with the C++ type of the elements.
template <typename Body>
void by_type(Type type, const Body& body) {
  switch (type) {
    case Type::fp32:
      return body(float{});
    case Type::bf16:
      return body(__nv_bfloat16{});
    case Type::fp16:
      return body(__half{});
    default:
      throw DeviceError("a CUDA kernel was given a type that it cannot use");
  }
}

// The same for two types.
template <typename Body>
void by_types(Type first, Type second, const Body& body) {
  by_type(first, [&](auto a) { by_type(second, [&](auto b) { body(a, b); }); });
}

template <typename T>
struct Rows {
  T* data = nullptr;
  std::int64_t rows = 0, columns = 0, stride = 0;
  __device__ T* row(std::int64_t r) const { return data + r * stride; }
  __device__ float load(std::int64_t r, std::int64_t c) const { return to_float(data[r * stride + c]); }
  __device__ void store(std::int64_t r, std::int64_t c, float x) const { data[r * stride + c] = from_float<T>(x); }
};

template <typename T>
constexpr Type type_of();
template <>
constexpr Type type_of<float>() { return Type::fp32; }
template <>
constexpr Type type_of<__nv_bfloat16>() { return Type::bf16; }
template <>
constexpr Type type_of<__half>() { return Type::fp16; }
template <>
constexpr Type type_of<std::uint8_t>() { return Type::uint8; }
template <>
constexpr Type type_of<std::int32_t>() { return Type::int32; }
template <>
constexpr Type type_of<std::int64_t>() { return Type::int64; }

// The first element; nullptr for an absent operand.
template <typename T>
T* data(const Tensor& tensor) {
  if (tensor.given() && tensor.type != type_of<T>()) throw DeviceError("operands of a CUDA kernel differ in type");
  return static_cast<T*>(tensor.data);
}
template <typename T>
Rows<T> rows_of(const Tensor& tensor) { return {data<T>(tensor), tensor.rows, tensor.columns, tensor.stride}; }
inline float* floats(const Tensor& tensor) { return data<float>(tensor); }
inline const std::int64_t* labels_of(const Tensor& tensor) { return data<std::int64_t>(tensor); }

// Limits the number of blocks: kernels stride over the rest.
inline unsigned some_blocks(std::int64_t wanted) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, 65535));
}
inline unsigned blocks_of_rows(const Tensor& tensor) { return some_blocks(tensor.rows); }
inline unsigned blocks_for(std::int64_t count) { return some_blocks((count + kThreads - 1) / kThreads); }

// A kernel can use more than 48 KiB of shared memory only after this request. It requests the maximum of a
// block, as ranks on one GPU launch the same kernel concurrently with different sizes.
template <typename Kernel>
void allow_shared(Kernel kernel, std::size_t bytes) {
  int device = 0, most = 0;
  cudaFuncAttributes own = {};
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory");
  check(cudaFuncGetAttributes(&own, kernel), "shared memory of a kernel");
  const int left = most - static_cast<int>(own.sharedSizeBytes);
  if (bytes > static_cast<std::size_t>(left)) throw DeviceError("a kernel needs more shared memory than this GPU has");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, left), "shared memory of a kernel");
}

// The dynamic shared memory of a block, besides the memory that its kernel declares.
__device__ inline float* shared_floats() {
  extern __shared__ float of_launch[];
  return of_launch;
}

// body(row, column) for every element, consecutive threads along a row.
template <typename Body>
__global__ void elements(std::int64_t rows, std::int64_t columns, Body body) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
    for (std::int64_t c = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; c < columns; c += step) body(r, c);
  }
}
template <typename Body>
void for_elements(cudaStream_t stream, std::int64_t rows, std::int64_t columns, const Body& body, const char* what) {
  if (rows * columns == 0) return;
  launch(stream, what, elements<Body>, {dim3(blocks_for(columns), some_blocks(rows))}, rows, columns, body);
}

// Reduces over all threads of a block (whole warps, at most kThreads); every thread gets the result.
template <typename Join>
__device__ inline float over_block(float value, float neutral, Join join) {
  __shared__ float warps[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) value = join(value, __shfl_xor_sync(0xffffffffU, value, offset));
  __syncthreads();  // the last use of `warps` is over
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < blockDim.x / 32 ? warps[threadIdx.x % 32] : neutral;
  for (int offset = 16; offset > 0; offset /= 2) value = join(value, __shfl_xor_sync(0xffffffffU, value, offset));
  return value;
}
__device__ inline float block_sum(float value) {
  return over_block(value, 0.0F, [](float a, float b) { return a + b; });
}
__device__ inline float block_maximum(float value) {
  return over_block(value, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
}

// Division of numbers below 2^32, which takes a GPU fewer steps than 64-bit division.
struct Division {
  std::int64_t quotient, rest;
};
__device__ inline Division divide(std::int64_t number, std::int64_t by) {
  const auto dividend = static_cast<unsigned>(number), divisor = static_cast<unsigned>(by);
  return {dividend / divisor, dividend % divisor};
}

// The place of a row of tokens in its sequence.
struct DeviceTokens {
  std::int64_t sequences, length;
  bool position_major;
  const std::int32_t* positions;
  __device__ std::int64_t place(std::int64_t row) const {
    return position_major ? divide(row, sequences).quotient : divide(row, length).rest;
  }
  __device__ std::int64_t position_of_place(std::int64_t at) const { return positions == nullptr ? at : positions[at]; }
  __device__ std::int64_t position(std::int64_t row) const { return position_of_place(place(row)); }
  __device__ std::int64_t row(std::int64_t sequence, std::int64_t at) const {
    return position_major ? at * sequences + sequence : sequence * length + at;
  }
};
inline DeviceTokens on_device(const Tokens& tokens) {
  return {tokens.sequences, tokens.length, tokens.position_major, data<std::int32_t>(tokens.positions)};
}

}  // namespace rehearse::kernels::cuda
