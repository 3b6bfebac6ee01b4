// The forward scan, and the gradients of its weights.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/state_space.cuh"
#include "kernels/cuda/sums.cuh"

namespace rehearse::kernels::cuda {

namespace {

// Shared memory: x, B, C and the rows' sums, by slot.
template <int K, typename T>
__global__ void __launch_bounds__(kMaxStateThreads) scan(ScanInputs<T> in, Rows<T> ungated, Rows<T> output) {
  constexpr int kWidth = WarpState<K>::kColumns;
  const int pitch = static_cast<int>(blockDim.x) / 32 * kStateRows;
  float *const x = shared_floats(), *const b = x + kSlots * pitch, *const c = b + kSlots * kWidth,
               *const sums = c + kSlots * kWidth;
  __shared__ float delta[kSlots], decay[kSlots];
  const BlockHead<T> head(in);
  WarpState<K> state;
  for (std::int64_t first = 0; first < in.tokens.length; first += kSlots) {
    const auto count = static_cast<int>(min(std::int64_t{kSlots}, in.tokens.length - first));
    const Slots slots{in.tokens, head.sequence, first, count, 1};
    load_slots(x, slots, in.convolved, head.own, in.head_dim, pitch);
    load_slots(b, slots, in.convolved, head.b, in.state, kWidth);
    load_slots(c, slots, in.convolved, head.c, in.state, kWidth);
    const int mine = static_cast<int>(threadIdx.x);
    if (mine < count) {
      delta[mine] = head.delta(head.raw_step(in, slots.row(mine)));
      decay[mine] = expf(head.rate * delta[mine]);
    }
    __syncthreads();
    for (int slot = 0; slot < count; ++slot) {
      state.decay(decay[slot]);
      state.add(delta[slot], x + slot * pitch, b + slot * kWidth);
      state.times(c + slot * kWidth, sums + slot * pitch);
    }
    __syncthreads();
    for (int i = mine; i < count * pitch; i += static_cast<int>(blockDim.x)) {
      const int p = i % pitch;
      if (p >= in.head_dim) continue;
      const std::int64_t r = slots.row(i / pitch), column = head.own + p;
      const float y = sums[i] + head.skip * x[i];
      ungated.store(r, column, y);
      output.store(r, column, y * silu(in.gate.load(r, column)));
    }
    __syncthreads();
  }
}

// One block a head and a stretch of rows.
template <typename T>
__global__ void skip_gradient(Rows<T> dout, Rows<T> gate, Rows<T> convolved, int head_dim, float* dskip) {
  const std::int64_t first = std::int64_t{blockIdx.x} * head_dim;
  const std::int64_t rows_at_once = blockDim.x / 32, step = gridDim.y * rows_at_once;
  float sum = 0;
  for (std::int64_t r = blockIdx.y * rows_at_once + threadIdx.x / 32; r < dout.rows; r += step) {
    for (std::int64_t c = first + threadIdx.x % 32; c < first + head_dim; c += 32)
      sum += dout.load(r, c) * silu(gate.load(r, c)) * convolved.load(r, c);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(dskip + blockIdx.x, sum);
}

template <typename T>
__global__ void step_sums(Rows<T> dstep, Rows<float> ddecay, float* dbias, float* dlog) {
  add_up_columns<1>(dstep.rows, dstep.columns, {dbias, dlog}, [&](std::int64_t r, std::int64_t h, float (&sums)[2][1]) {
    sums[0][0] += dstep.load(r, h);
    sums[1][0] += ddecay.load(r, h);
  });
}

}  // namespace

void run(const Context& context, const Scan& call) {
  const ScanShape& shape = call.shape;
  require_scan(shape, call.convolved);
  by_type(call.convolved.type, [&](auto zero) {
    using T = decltype(zero);
    by_state(shape.state, [&](auto lane) {
      constexpr int kOfLane = decltype(lane)::kColumns;
      Grid grid = by_head(shape);
      const std::size_t pitch = grid.threads / 32 * kStateRows;
      grid.shared_bytes = kSlots * (2 * pitch + 2 * WarpState<kOfLane>::kColumns) * sizeof(float);
      allow_shared(scan<kOfLane, T>, grid.shared_bytes);
      launch(context.stream, "scan", scan<kOfLane, T>, grid, inputs_of<T>(call), rows_of<T>(call.ungated),
             rows_of<T>(call.output));
    });
  });
}

void run(const Context& context, const ScanWeightGradient& call) {
  constexpr const char* kWhat = "scan weight gradient";
  constexpr std::int64_t kStretch = 512;  // rows of a block
  const ScanShape& shape = call.shape;
  require_scan(shape, call.convolved);
  by_type(call.convolved.type, [&](auto zero) {
    using T = decltype(zero);
    const auto add_up = [&](const auto& sums, void* /*memory*/) {
      const std::int64_t rows = shape.tokens.rows();
      launch(context.stream, kWhat, step_sums<T>, {blocks_of_columns<1>(rows, shape.heads)},
             rows_of<T>(call.step_gradient), rows_of<float>(call.decay_gradient), sums[0].data, sums[1].data);
      const dim3 blocks(static_cast<unsigned>(shape.heads), some_blocks((rows + kStretch - 1) / kStretch));
      launch(context.stream, kWhat, skip_gradient<T>, {blocks}, rows_of<T>(call.output_gradient), rows_of<T>(call.gate),
             rows_of<T>(call.convolved), static_cast<int>(shape.head_dim), sums[2].data);
    };
    sum_in_fp32(context, std::array{call.step_bias_gradient, call.decay_log_gradient, call.skip_gradient}, add_up,
                kWhat);
  });
}

}  // namespace rehearse::kernels::cuda
