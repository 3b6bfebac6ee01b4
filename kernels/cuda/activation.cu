// The activation between the GEMMs of an MLP, and its gradient.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/silu.cuh"

namespace rehearse::kernels::cuda {

namespace {

// x s(v) is GELU by tanh, as 1 + tanh(u) = 2 s(2 u): v = x (kLinear + kCubic x^2).
constexpr float kLinear = 2 * 0.7978845608F;  // 2 sqrt(2 / pi)
constexpr float kCubic = kLinear * 0.044715F;
__device__ inline float gelu_sigmoid(float x) { return sigmoid(x * (kLinear + kCubic * x * x)); }
__device__ inline float gelu(float x) { return x * gelu_sigmoid(x); }
__device__ inline float gelu_slope(float x) {
  const float s = gelu_sigmoid(x);
  return s + x * s * (1 - s) * (kLinear + 3 * kCubic * x * x);
}
__device__ inline float positive(float x) { return fmaxf(x, 0.0F); }

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
    const auto each = [&](const auto& y) { store(out.row(r) + c, Lanes<N>::of([&](int i) { return scale * y(i); })); };
    if (kind == ActivationKind::gelu) return each([&](int i) { return gelu(x.x[i]); });
    if (kind == ActivationKind::squared_relu) return each([&](int i) { return positive(x.x[i]) * positive(x.x[i]); });
    const Lanes<N> up = load<N>(in.row(r) + c + out.columns);
    each([&](int i) { return silu(x.x[i]) * up.x[i]; });
  }
};

// An activation's value and derivative at a point.
struct Slope {
  float value, slope;
};

// One block a row, which also sums the gradient of the row's weight.
template <int N, typename T>
__global__ void activate_backward(Rows<T> dy, Rows<T> in, const float* weights, Rows<T> dx, float* dweights,
                                  ActivationKind kind) {
  const bool gated = kind == ActivationKind::swiglu;
  for (std::int64_t r = blockIdx.x; r < dy.rows; r += gridDim.x) {
    const float scale = weights == nullptr ? 1.0F : weights[r];
    float dot = 0;
    for (std::int64_t c = std::int64_t{threadIdx.x} * N; c < dy.columns; c += kThreads * N) {
      const Lanes<N> x = load<N>(in.row(r) + c), g = load<N>(dy.row(r) + c);
      const auto each = [&](const auto& activation, const Lanes<N>& up) {
        Lanes<N> of_x, of_up;
        for (int i = 0; i < N; ++i) {
          const Slope at = activation(x.x[i]);
          of_x.x[i] = scale * g.x[i] * up.x[i] * at.slope;
          of_up.x[i] = scale * g.x[i] * at.value;
          dot += g.x[i] * up.x[i] * at.value;
        }
        store(dx.row(r) + c, of_x);
        if (gated) store(dx.row(r) + c + dy.columns, of_up);
      };
      const Lanes<N> alone = Lanes<N>::of([](int /*i*/) { return 1.0F; });
      if (gated) {
        each([](float v) { return Slope{silu(v), silu_slope(v)}; }, load<N>(in.row(r) + c + dy.columns));
      } else if (kind == ActivationKind::gelu) {
        each([](float v) { return Slope{gelu(v), gelu_slope(v)}; }, alone);
      } else {
        each([](float v) { return Slope{positive(v) * positive(v), 2 * positive(v)}; }, alone);
      }
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
    constexpr int kMax = kLanes<T>;
    const Rows<T> dy = rows_of<T>(call.output_gradient), in = rows_of<T>(call.input);
    const Rows<T> dx = rows_of<T>(call.input_gradient);
    const bool wide = in_packs<kMax>(dy) && in_packs<kMax>(in) && in_packs<kMax>(dx);
    launch(context.stream, "activation backward", wide ? activate_backward<kMax, T> : activate_backward<1, T>,
           {some_blocks(dy.rows)}, dy, in, floats(call.weights), dx, floats(call.weights_gradient), call.kind);
  });
}

}  // namespace rehearse::kernels::cuda
