// What stands between the products of an MLP, and its gradient.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/silu.cuh"

namespace rehearse::kernels::cuda {

namespace {

constexpr float kRoot = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kCube = 0.044715F;
// tanhf() takes so long that memory waits for it; this errs by some 2^-21, absolute, and one is added.
__device__ float tangent(float x) { return 1 - __fdividef(2.0F, 1 + __expf(2 * kRoot * (x + kCube * x * x * x))); }
__device__ float gelu(float x) { return 0.5F * x * (1 + tangent(x)); }
__device__ float gelu_slope(float x) {
  const float t = tangent(x);
  return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * kRoot * (1 + 3 * kCube * x * x);
}

template <typename T>
struct Activate {
  Rows<T> in, out;
  const float* weights;
  ActivationKind kind;
  template <int N>
  bool in_packs() const {
    return cuda::in_packs<N>(in) && cuda::in_packs<N>(out);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t c) const {
    const float scale = weights == nullptr ? 1.0F : weights[r];
    const Lanes<N> x = load<N>(in.row(r) + c);
    Lanes<N> up = {};
    if (kind == ActivationKind::swiglu) up = load<N>(in.row(r) + c + out.columns);
    store(out.row(r) + c, Lanes<N>::of([&](int i) {
            const float positive = fmaxf(x.x[i], 0.0F);
            return scale * (kind == ActivationKind::swiglu ? silu(x.x[i]) * up.x[i]
                            : kind == ActivationKind::gelu ? gelu(x.x[i])
                                                           : positive * positive);
          }));
  }
};

// What an element's gradient is, and its part of the gradient of its row's weight.
struct Slope {
  float gradient, of_up, dot;
};
__device__ inline Slope slope(ActivationKind kind, float x, float up, float g) {
  if (kind == ActivationKind::swiglu) {
    return {g * up * silu_slope(x), g * silu(x), g * silu(x) * up};
  }
  if (kind == ActivationKind::gelu) return {g * gelu_slope(x), 0, g * gelu(x)};
  const float positive = fmaxf(x, 0.0F);
  return {g * 2 * positive, 0, g * positive * positive};
}

// One block a row, which also sums the gradient of the row's weight.
template <int N, typename T>
__global__ void activate_backward(Rows<T> dy, Rows<T> in, const float* weights, Rows<T> dx, float* dweights,
                                  ActivationKind kind) {
  for (std::int64_t r = blockIdx.x; r < dy.rows; r += gridDim.x) {
    const float scale = weights == nullptr ? 1.0F : weights[r];
    float dot = 0;
    for (std::int64_t c = std::int64_t{threadIdx.x} * N; c < dy.columns; c += kThreads * N) {
      const Lanes<N> x = load<N>(in.row(r) + c), g = load<N>(dy.row(r) + c);
      Lanes<N> up = {}, of_up = {}, of_x = {};
      if (kind == ActivationKind::swiglu) up = load<N>(in.row(r) + c + dy.columns);
      for (int i = 0; i < N; ++i) {
        const Slope each = slope(kind, x.x[i], up.x[i], g.x[i]);
        of_x.x[i] = scale * each.gradient;
        of_up.x[i] = scale * each.of_up;
        dot += each.dot;
      }
      store(dx.row(r) + c, of_x);
      if (kind == ActivationKind::swiglu) store(dx.row(r) + c + dy.columns, of_up);
    }
    if (dweights == nullptr) continue;
    dot = block_sum(dot);
    if (threadIdx.x == 0) dweights[r] = dot;
  }
}

}  // namespace

void run(const Context& context, const Activation& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    for_packs<kLanes<T>>(
        context.stream, call.output.rows, call.output.columns,
        Activate<T>{rows_of<T>(call.input), rows_of<T>(call.output), floats(call.weights), call.kind}, "activation");
  });
}

void run(const Context& context, const ActivationBackward& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kMost = kLanes<T>;
    const Rows<T> dy = rows_of<T>(call.output_gradient), in = rows_of<T>(call.input);
    const Rows<T> dx = rows_of<T>(call.input_gradient);
    const bool wide = in_packs<kMost>(dy) && in_packs<kMost>(in) && in_packs<kMost>(dx);
    launch(context.stream, "activation backward", wide ? activate_backward<kMost, T> : activate_backward<1, T>,
           {some_blocks(dy.rows)}, dy, in, floats(call.weights), dx, floats(call.weights_gradient), call.kind);
  });
}

}  // namespace rehearse::kernels::cuda
