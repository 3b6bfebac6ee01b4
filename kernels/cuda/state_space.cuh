// One head's recurrence on one block. The state stays in registers; tokens pass through shared memory a few
// at a time.
//
// Forward and backward are the same recurrence with swapped operands: state = decay state + left right^T. A
// kernel multiplies the state by a vector on the right (an output by row of the state) or on the left (by
// column). Forward, left is delta x and right is B. Backward in time, left is the gradient of C's output and
// right is C.
#pragma once

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/silu.cuh"

namespace rehearse::kernels::cuda {

constexpr int kStateRows = 8;  // of a warp; each lane takes K columns
constexpr int kMaxStateThreads = 512;
constexpr int kSlots = 8;  // tokens in shared memory at a time

// One number of each head, with a type known only at launch: read once a block.
struct HeadNumbers {
  const void* data;
  Type type;
  __device__ float operator[](std::int64_t head) const {
    if (type == Type::bf16) return to_float(static_cast<const __nv_bfloat16*>(data)[head]);
    if (type == Type::fp16) return to_float(static_cast<const __half*>(data)[head]);
    return static_cast<const float*>(data)[head];
  }
};
inline HeadNumbers head_numbers(const Tensor& tensor) {
  by_type(tensor.type, [](auto) {});  // throws for other types
  return {tensor.data, tensor.type};
}

template <typename T>
struct ScanInputs {
  DeviceTokens tokens;
  std::int64_t heads, groups;
  int head_dim, state;
  Rows<T> gate, convolved, step;
  HeadNumbers step_bias, decay_log, skip;

  std::int64_t inner() const { return heads * head_dim; }
};
// `call` is a Scan or a ScanInputGradient.
template <typename T, typename Call>
ScanInputs<T> inputs_of(const Call& call) {
  const ScanShape& shape = call.shape;
  return {on_device(shape.tokens),      shape.heads,
          shape.groups,                 static_cast<int>(shape.head_dim),
          static_cast<int>(shape.state), rows_of<T>(call.gate),
          rows_of<T>(call.convolved),   rows_of<T>(call.step),
          head_numbers(call.step_bias), head_numbers(call.decay_log),
          head_numbers(call.skip)};
}

// The head of this block: its scalars, and the first columns of its operands.
template <typename T>
struct BlockHead {
  std::int64_t sequence, head, group, own, b, c;
  float bias, rate, skip;  // decay = exp(rate delta)
  __device__ explicit BlockHead(const ScanInputs<T>& in)
      : sequence(blockIdx.y),
        head(blockIdx.x),
        group(head / (in.heads / in.groups)),
        own(head * in.head_dim),
        b(in.heads * in.head_dim + group * in.state),
        c(b + in.groups * in.state),
        bias(in.step_bias[head]),
        rate(-expf(in.decay_log[head])),
        skip(in.skip[head]) {}

  // With its bias. softplus(x) equals x to the last bit above 20.
  __device__ float raw_step(const ScanInputs<T>& in, std::int64_t row) const { return in.step.load(row, head) + bias; }
  __device__ static float delta(float raw) { return raw > 20 ? raw : log1pf(expf(raw)); }
};

// The tokens in shared memory: `count` from place `first` on, forward or backward in time.
struct Slots {
  DeviceTokens tokens;
  std::int64_t sequence, first;
  int count, direction;
  __device__ std::int64_t place(int slot) const { return first + direction * slot; }
  __device__ std::int64_t row(int slot) const { return tokens.row(sequence, place(slot)); }
};

// to[slot][column] = value(row, column), zeros from `width` to `pitch`.
template <typename Value>
__device__ void fill_slots(float* to, const Slots& slots, int width, int pitch, const Value& value) {
  for (int i = static_cast<int>(threadIdx.x); i < slots.count * pitch; i += static_cast<int>(blockDim.x))
    to[i] = i % pitch < width ? value(slots.row(i / pitch), i % pitch) : 0.0F;
}
template <typename T>
__device__ void load_slots(float* to, const Slots& slots, const Rows<T>& from, std::int64_t first, int width,
                           int pitch) {
  fill_slots(to, slots, width, pitch, [&](std::int64_t r, int c) { return from.load(r, first + c); });
}

__device__ inline float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffU, value, offset);
  return value;
}

// Sums over a warp of the kStateRows numbers of each lane; lane l gets the sum of row l / 4. In each of three
// shuffles, lanes give away the half of their rows that they do not keep. That takes nine shuffles, where one
// row alone takes five.
__device__ inline float warp_sums(float (&x)[kStateRows], int lane) {
  static_assert(kStateRows == 8);
  for (int kept = kStateRows / 2, offset = 16; kept > 0; kept /= 2, offset /= 2) {
    const bool upper = (lane & offset) != 0;
    for (int j = 0; j < kept; ++j) {
      const float own = upper ? x[j + kept] : x[j], given = upper ? x[j] : x[j + kept];
      x[j] = own + __shfl_xor_sync(0xffffffffU, given, offset);
    }
  }
  x[0] += __shfl_xor_sync(0xffffffffU, x[0], 2);
  return x[0] + __shfl_xor_sync(0xffffffffU, x[0], 1);
}

// A warp's part of the state: kStateRows rows of 32 K columns, lanes side by side.
template <int K>
struct WarpState {
  static constexpr int kColumns = 32 * K;
  float x[kStateRows][K] = {};

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }

  __device__ void decay(float factor) {
    for (int j = 0; j < kStateRows; ++j)
      for (int k = 0; k < K; ++k) x[j][k] *= factor;
  }
  // Adds scale left right^T: `left` by the block's rows, `right` by all columns.
  __device__ void add(float scale, const float* left, const float* right) {
    float more[K];
    for (int k = 0; k < K; ++k) more[k] = right[lane() + 32 * k];
    for (int j = 0; j < kStateRows; ++j) {
      const float factor = scale * left[warp() * kStateRows + j];
      for (int k = 0; k < K; ++k) x[j][k] += factor * more[k];
    }
  }
  // sums[row] = the row times `right`.
  __device__ void times(const float* right, float* sums) const {
    float factor[K];
    for (int k = 0; k < K; ++k) factor[k] = right[lane() + 32 * k];
    float by_row[kStateRows] = {};
    for (int j = 0; j < kStateRows; ++j)
      for (int k = 0; k < K; ++k) by_row[j] += x[j][k] * factor[k];
    const float sum = warp_sums(by_row, lane());
    if (lane() % 4 == 0) sums[warp() * kStateRows + lane() / 4] = sum;
  }
  // sums[warp][column] = `left` times the warp's part of the column.
  __device__ void times_from_left(const float* left, float* sums) const {
    float sum[K] = {};
    for (int j = 0; j < kStateRows; ++j) {
      const float factor = left[warp() * kStateRows + j];
      for (int k = 0; k < K; ++k) sum[k] += factor * x[j][k];
    }
    for (int k = 0; k < K; ++k) sums[warp() * kColumns + lane() + 32 * k] = sum[k];
  }
};

// One block for each head of a sequence, with as many warps as its rows need.
inline Grid by_head(const ScanShape& shape) {
  const auto warps = static_cast<unsigned>((shape.head_dim + kStateRows - 1) / kStateRows);
  return {dim3(static_cast<unsigned>(shape.heads), static_cast<unsigned>(shape.tokens.sequences)), 32 * warps};
}

inline void require_scan(const ScanShape& shape, const Tensor& convolved) {
  if (convolved.columns != shape.inner() + 2 * shape.groups * shape.state)
    throw DeviceError("a scan's convolved rows hold x, then B and C of every group");
  if (shape.heads % shape.groups != 0) throw DeviceError("a scan's heads do not divide into its groups");
  if (shape.head_dim > kMaxStateThreads / 32 * kStateRows || shape.state > 256)
    throw DeviceError("a scan on CUDA: heads are at most 128 wide, states at most 256");
}

// body(K) for a state of this width; K is the number of columns of a lane, as a type.
template <int K>
struct OfLane {
  static constexpr int kColumns = K;
};
template <typename Body>
void by_state(std::int64_t state, const Body& body) {
  if (state <= 64) return body(OfLane<2>{});
  if (state <= 128) return body(OfLane<4>{});
  body(OfLane<8>{});
}

}  // namespace rehearse::kernels::cuda
