// The gradients of the scan's inputs in two passes, neither of which stores a state. The gradient of C needs
// the states, forward in time. All other gradients need the states' gradients, backward in time. Heads of a
// group add their gradients of B and C to fp32 sums by atomicAdd(), in any order.
//
// The gradient of log(decay_t), w_t, is G_t R_t: the gradient G_t of the state times R_t = decay_t
// state_{t-1}. That needs both at once. But let u_t be the gradient of `ungated` and H_t = decay_{t+1}
// G_{t+1}. Then G_t = u_t C_t^T + H_t and state_t = R_t + delta_t x_t B_t^T. So w_t = G_t R_t = H_t R_t +
// u_t^T R_t C_t, and w_{t+1} = H_t state_t = H_t R_t + delta_t x_t^T H_t B_t.
//
// Each pass computes one of the two terms by which w_t and w_{t+1} differ. Neither is a product of a token
// with itself: where decay is fast, the terms are as small as w. A token whose own decay leaves nothing that
// fp32 can represent has R_t = 0, and w starts anew there. Otherwise the rounding errors of earlier w's would
// stay in all later ones.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/scratch.h"
#include "kernels/cuda/state_space.cuh"

namespace rehearse::kernels::cuda {

namespace {

template <typename T>
struct ScanGradients {
  Rows<T> output, ungated;
  Rows<T> gate, convolved, step;
  Rows<float> decay;
  Rows<float> sums;    // of B and of C, by group
  Rows<float> found;   // u^T R C, by head
};

// Shared memory, by slot.
template <int K>
struct Staged {
  static constexpr int kWidth = WarpState<K>::kColumns;
  int pitch, warps;
  float *x, *ungated, *sums;  // `ungated`: the gradient
  float *b, *c, *parts;       // parts[slot][warp][column]
  __device__ explicit Staged(float* memory)
      : pitch(static_cast<int>(blockDim.x) / 32 * kStateRows), warps(static_cast<int>(blockDim.x) / 32) {
    x = memory;
    ungated = x + kSlots * pitch;
    sums = ungated + kSlots * pitch;
    b = sums + kSlots * pitch;
    c = b + kSlots * kWidth;
    parts = c + kSlots * kWidth;
  }
  static std::size_t bytes(unsigned threads) {
    const std::size_t warps = threads / 32;
    return kSlots * (3 * warps * kStateRows + 2 * kWidth + warps * kWidth) * sizeof(float);
  }

  template <typename T>
  __device__ void fill(const ScanInputs<T>& in, const BlockHead<T>& head, const Slots& slots,
                       const Rows<T>& dout) const {
    load_slots(x, slots, in.convolved, head.own, in.head_dim, pitch);
    load_slots(b, slots, in.convolved, head.b, in.state, kWidth);
    load_slots(c, slots, in.convolved, head.c, in.state, kWidth);
    fill_slots(ungated, slots, in.head_dim, pitch, [&](std::int64_t r, int p) {
      return dout.load(r, head.own + p) * silu(in.gate.load(r, head.own + p));
    });
  }

  // Column sums of a slot, multiplied by a vector: for the state before the token's update, and after it.
  struct Dots {
    float found, whole;
  };
  // Adds scale x the column sums of the whole state to `to`. The token's own share is `left` times `right`.
  // Called by one warp.
  __device__ Dots add_columns(int slot, float scale, int width, float* to, float left, const float* right,
                              const float* factor) const {
    Dots dots{0, 0};
    for (int n = static_cast<int>(threadIdx.x) % 32; n < width; n += 32) {
      float sum = 0;
      for (int warp = 0; warp < warps; ++warp) sum += parts[(slot * warps + warp) * kWidth + n];
      dots.found += factor[n] * sum;
      sum += left * right[n];
      dots.whole += factor[n] * sum;
      atomicAdd(to + n, scale * sum);
    }
    return {warp_sum(dots.found), warp_sum(dots.whole)};
  }
  // x times the gradient of `ungated`, by one warp.
  __device__ float own_product(int slot) const {
    float sum = 0;
    for (int p = static_cast<int>(threadIdx.x) % 32; p < pitch; p += 32)
      sum += x[slot * pitch + p] * ungated[slot * pitch + p];
    return warp_sum(sum);
  }
};

// Forward in time: the gradients of C and of the gate.
template <int K, typename T>
__global__ void __launch_bounds__(kMaxStateThreads) c_gradient(ScanInputs<T> in, ScanGradients<T> all) {
  const Staged<K> staged(shared_floats());
  constexpr int kWidth = Staged<K>::kWidth;
  __shared__ float delta[kSlots], decay[kSlots];
  const BlockHead<T> head(in);
  const int mine = static_cast<int>(threadIdx.x), warp = WarpState<K>::warp();
  WarpState<K> state;
  for (std::int64_t first = 0; first < in.tokens.length; first += kSlots) {
    const auto count = static_cast<int>(min(std::int64_t{kSlots}, in.tokens.length - first));
    const Slots slots{in.tokens, head.sequence, first, count, 1};
    staged.fill(in, head, slots, all.output);
    if (mine < count) {
      delta[mine] = head.delta(head.raw_step(in, slots.row(mine)));
      decay[mine] = expf(head.rate * delta[mine]);
    }
    for (int i = mine; i < count * in.head_dim; i += static_cast<int>(blockDim.x)) {
      const std::int64_t r = slots.row(i / in.head_dim), column = head.own + i % in.head_dim;
      const float slope = silu_slope(in.gate.load(r, column));
      all.gate.store(r, column, all.output.load(r, column) * all.ungated.load(r, column) * slope);
    }
    __syncthreads();
    for (int slot = 0; slot < count; ++slot) {
      state.decay(decay[slot]);
      state.times_from_left(staged.ungated + slot * staged.pitch, staged.parts + slot * staged.warps * kWidth);
      state.add(delta[slot], staged.x + slot * staged.pitch, staged.b + slot * kWidth);
    }
    __syncthreads();
    for (int slot = warp; slot < count; slot += staged.warps) {
      const std::int64_t r = slots.row(slot);
      float* const to = all.sums.row(r) + (in.groups + head.group) * in.state;
      const float left = delta[slot] * staged.own_product(slot);
      const auto dots =
          staged.add_columns(slot, 1, in.state, to, left, staged.b + slot * kWidth, staged.c + slot * kWidth);
      if (WarpState<K>::lane() == 0) all.found.store(r, head.head, dots.found);
    }
    __syncthreads();
  }
}

// Backward in time: the gradients of x, B, step and, for its sum, decay_log.
template <int K, typename T>
__global__ void __launch_bounds__(kMaxStateThreads) b_gradient(ScanInputs<T> in, ScanGradients<T> all) {
  const Staged<K> staged(shared_floats());
  constexpr int kWidth = Staged<K>::kWidth;
  constexpr float kNothing = 0x1p-24F;
  __shared__ float raw[kSlots], delta[kSlots], own[kSlots], decay[kSlots], with_b[kSlots], apart[kSlots];
  const BlockHead<T> head(in);
  const int mine = static_cast<int>(threadIdx.x), warp = WarpState<K>::warp();
  float later = 0;  // w of the token after the slots
  WarpState<K> state;
  for (std::int64_t last = in.tokens.length - 1; last >= 0; last -= kSlots) {
    const auto count = static_cast<int>(min(std::int64_t{kSlots}, last + 1));
    const Slots slots{in.tokens, head.sequence, last, count, -1};
    staged.fill(in, head, slots, all.output);
    if (mine < count) {
      const std::int64_t r = slots.row(mine), behind = slots.place(mine) + 1;
      raw[mine] = head.raw_step(in, r);
      delta[mine] = head.delta(raw[mine]);
      own[mine] = expf(head.rate * delta[mine]);
      apart[mine] = all.found.load(r, head.head);
      decay[mine] = 0;  // of the following token, whose state's gradient it scales
      if (behind < in.tokens.length)
        decay[mine] = expf(head.rate * head.delta(head.raw_step(in, in.tokens.row(head.sequence, behind))));
    }
    __syncthreads();
    for (int slot = 0; slot < count; ++slot) {
      state.decay(decay[slot]);
      state.times_from_left(staged.x + slot * staged.pitch, staged.parts + slot * staged.warps * kWidth);
      state.add(1, staged.ungated + slot * staged.pitch, staged.c + slot * kWidth);
      state.times(staged.b + slot * kWidth, staged.sums + slot * staged.pitch);
    }
    __syncthreads();
    for (int i = mine; i < count * staged.pitch; i += static_cast<int>(blockDim.x)) {
      const int slot = i / staged.pitch, p = i % staged.pitch;
      if (p < in.head_dim)
        all.convolved.store(slots.row(slot), head.own + p,
                            head.skip * staged.ungated[i] + delta[slot] * staged.sums[i]);
    }
    for (int slot = warp; slot < count; slot += staged.warps) {
      float* const to = all.sums.row(slots.row(slot)) + head.group * in.state;
      const auto dots = staged.add_columns(slot, delta[slot], in.state, to, staged.own_product(slot),
                                           staged.c + slot * kWidth, staged.b + slot * kWidth);
      if (WarpState<K>::lane() != 0) continue;
      with_b[slot] = dots.whole;
      apart[slot] -= delta[slot] * dots.found;
    }
    __syncthreads();
    float w = later;
    for (int slot = 0; slot < count; ++slot) {
      w = slots.place(slot) == 0 || own[slot] < kNothing ? 0.0F : w + apart[slot];
      if (slot != mine) continue;
      const std::int64_t r = slots.row(slot);
      all.step.store(r, head.head, (with_b[slot] + head.rate * w) * sigmoid(raw[slot]));
      all.decay.store(r, head.head, head.rate * delta[slot] * w);
    }
    later = w;
    __syncthreads();
  }
}

template <typename T>
struct StoreSums {
  Rows<float> sums;
  Rows<T> convolved;
  std::int64_t first;  // column of B
  __device__ void operator()(std::int64_t r, std::int64_t c) const { convolved.store(r, first + c, sums.load(r, c)); }
};

}  // namespace

void run(const Context& context, const ScanInputGradient& call) {
  constexpr const char* kWhat = "scan input gradient";
  const ScanShape& shape = call.shape;
  require_scan(shape, call.convolved);
  const std::int64_t rows = shape.tokens.rows(), shared = 2 * shape.groups * shape.state;
  const auto sum_bytes = static_cast<std::size_t>(rows * shared) * sizeof(float),
             all_bytes = sum_bytes + static_cast<std::size_t>(rows * shape.heads) * sizeof(float);
  auto* const memory = static_cast<float*>(context.scratch->at_least(all_bytes, context.stream));
  check(cudaMemsetAsync(memory, 0, sum_bytes, context.stream), kWhat);
  const Rows<float> sums{memory, rows, shared, shared}, found{memory + rows * shared, rows, shape.heads, shape.heads};
  by_type(call.convolved.type, [&](auto zero) {
    using T = decltype(zero);
    const ScanInputs<T> in = inputs_of<T>(call);
    const ScanGradients<T> all{rows_of<T>(call.output_gradient),    rows_of<T>(call.ungated),
                               rows_of<T>(call.gate_gradient),      rows_of<T>(call.convolved_gradient),
                               rows_of<T>(call.step_gradient),      rows_of<float>(call.decay_gradient),
                               sums,                                found};
    by_state(shape.state, [&](auto lane) {
      constexpr int kOfLane = decltype(lane)::kColumns;
      Grid grid = by_head(shape);
      grid.shared_bytes = Staged<kOfLane>::bytes(grid.threads);
      allow_shared(c_gradient<kOfLane, T>, grid.shared_bytes);
      allow_shared(b_gradient<kOfLane, T>, grid.shared_bytes);
      launch(context.stream, kWhat, c_gradient<kOfLane, T>, grid, in, all);
      launch(context.stream, kWhat, b_gradient<kOfLane, T>, grid, in, all);
    });
    for_elements(context.stream, rows, shared, StoreSums<T>{sums, all.convolved, in.inner()}, kWhat);
  });
}

}  // namespace rehearse::kernels::cuda
