// Kernels that pass over memory once.
#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/scratch.h"
#include "kernels/cuda/sums.cuh"
#include "kernels/philox.h"

namespace rehearse::kernels::cuda {

namespace {

struct Angle {
  float sine, cosine;
};

// Of every place and pair, in double once instead of for every head.
struct Angles {
  DeviceTokens tokens;
  Angle* table;
  std::int64_t half;
  float base;
  bool back;
  __device__ void operator()(std::int64_t place, std::int64_t pair) const {
    const double frequency = pow(static_cast<double>(base), -static_cast<double>(pair) / static_cast<double>(half));
    double sine, cosine;
    sincos(static_cast<double>(tokens.position_of_place(place)) * frequency, &sine, &cosine);
    table[place * half + pair] = {static_cast<float>(back ? -sine : sine), static_cast<float>(cosine)};
  }
};

// N pairs of one head.
template <typename T>
struct Turn {
  Rows<T> in, out;
  DeviceTokens tokens;
  const Angle* table;
  std::int64_t half;
  template <int N>
  bool in_packs() const {
    return half % N == 0 && cuda::in_packs<N>(in) && cuda::in_packs<N>(out);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t pair) const {
    const std::int64_t first = pair / half * 2 * half + pair % half;
    const Angle* angles = table + tokens.place(r) * half + pair % half;
    const Lanes<N> a = load<N>(in.row(r) + first), b = load<N>(in.row(r) + first + half);
    store(out.row(r) + first, Lanes<N>::of([&](int i) { return a.x[i] * angles[i].cosine - b.x[i] * angles[i].sine; }));
    store(out.row(r) + first + half, Lanes<N>::of([&](int i) { return b.x[i] * angles[i].cosine + a.x[i] * angles[i].sine; }));
  }
};

__device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

constexpr float kRoot = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kCube = 0.044715F;
__device__ float gelu(float x) { return 0.5F * x * (1 + tanhf(kRoot * (x + kCube * x * x * x))); }
__device__ float gelu_slope(float x) {
  const float t = tanhf(kRoot * (x + kCube * x * x * x));
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
            return scale * (kind == ActivationKind::swiglu ? x.x[i] * sigmoid(x.x[i]) * up.x[i]
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
    const float s = sigmoid(x);
    return {g * up * s * (1 + x * (1 - s)), g * x * s, g * x * s * up};
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

template <typename T>
struct Sum {
  Rows<T> in[4];
  const T* bias;
  Rows<T> out;
  template <int N>
  bool in_packs() const {
    return std::all_of(in, in + 4, [](const Rows<T>& each) { return cuda::in_packs<N>(each); }) &&
           cuda::in_packs<N>(bias) && cuda::in_packs<N>(out);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t c) const {
    Lanes<N> sum = {};
    if (bias != nullptr) sum = load<N>(bias + c);
    for (const Rows<T>& each : in) {
      if (each.data == nullptr) continue;
      const Lanes<N> more = load<N>(each.row(r) + c);
      sum = Lanes<N>::of([&](int i) { return sum.x[i] + more.x[i]; });
    }
    store(out.row(r) + c, sum);
  }
};

template <typename T>
struct Drop {
  Rows<T> in, residual, out;
  const T* bias;
  Rows<std::uint8_t> mask;
  float rate;
  std::uint64_t seed;
  Draws draws;
  template <int N>
  bool in_packs() const {
    return cuda::in_packs<N>(in) && cuda::in_packs<N>(residual) && cuda::in_packs<N>(out) &&
           cuda::in_packs<N>(bias) && cuda::in_packs<N>(mask);
  }
  __device__ bool keeps(std::int64_t i) const {
    return philox_uniform(seed, static_cast<std::uint64_t>(draws.number(i))) >= rate;
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t c) const {
    const Lanes<N> x = load<N>(in.row(r) + c);
    Lanes<N> shift = {}, rest = {};
    if (bias != nullptr) shift = load<N>(bias + c);
    if (residual.data != nullptr) rest = load<N>(residual.row(r) + c);
    Pack<std::uint8_t, N> kept;
    for (int i = 0; i < N; ++i) kept.x[i] = keeps(r * out.columns + c + i) ? 1 : 0;
    *reinterpret_cast<Pack<std::uint8_t, N>*>(mask.row(r) + c) = kept;
    store(out.row(r) + c, Lanes<N>::of([&](int i) {
            return rest.x[i] + (kept.x[i] != 0 ? (x.x[i] + shift.x[i]) / (1 - rate) : 0.0F);
          }));
  }
};

template <typename T>
struct DropBack {
  Rows<T> dy, dx;
  Rows<std::uint8_t> mask;
  float rate;
  template <int N>
  bool in_packs() const {
    return cuda::in_packs<N>(dy) && cuda::in_packs<N>(dx) && cuda::in_packs<N>(mask);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t c) const {
    const auto kept = *reinterpret_cast<const Pack<std::uint8_t, N>*>(mask.row(r) + c);
    const Lanes<N> g = load<N>(dy.row(r) + c);
    store(dx.row(r) + c, Lanes<N>::of([&](int i) { return kept.x[i] != 0 ? g.x[i] / (1 - rate) : 0.0F; }));
  }
};

// A block takes 32 packs of columns and a stretch of rows: eight rows at a time, then one sum over them.
template <int N, typename T>
__global__ void column_sums(Rows<T> in, float* sums) {
  __shared__ float part[kThreads * N];
  const int lane = threadIdx.x % 32, first_row = threadIdx.x / 32;
  const std::int64_t first = std::int64_t{blockIdx.x} * 32 * N, column = first + lane * N;
  Lanes<N> sum = {};
  for (std::int64_t r = blockIdx.y * 8 + first_row; column < in.columns && r < in.rows; r += std::int64_t{gridDim.y} * 8) {
    const Lanes<N> more = load<N>(in.row(r) + column);
    sum = Lanes<N>::of([&](int i) { return sum.x[i] + more.x[i]; });
  }
  for (int i = 0; i < N; ++i) part[(first_row * N + i) * 32 + lane] = sum.x[i];  // of one bank each
  __syncthreads();
  if (threadIdx.x >= 32 * N || first + threadIdx.x >= in.columns) return;
  float all = 0;
  for (int row = 0; row < 8; ++row) all += part[(row * N + static_cast<int>(threadIdx.x) % N) * 32 + threadIdx.x / N];
  atomicAdd(sums + first + threadIdx.x, all);
}

template <typename From, typename To>
struct Convert {
  Rows<From> in;
  Rows<To> out;
  template <int N>
  bool in_packs() const {
    return cuda::in_packs<N>(in) && cuda::in_packs<N>(out);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t c) const {
    store(out.row(r) + c, load<N>(in.row(r) + c));
  }
};

template <typename T>
struct Fill {
  Rows<T> out;
  float mean, spread;
  std::uint64_t seed;
  Draws draws;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    const auto number = static_cast<std::uint64_t>(draws.number(r * out.columns + c));
    out.store(r, c, mean + spread * (2 * philox_uniform(seed, number) - 1));
  }
};

}  // namespace

void run(const Context& context, const Rotary& call) {
  const std::int64_t half = call.query.columns / call.heads / 2, places = call.tokens.length;
  const DeviceTokens tokens = on_device(call.tokens);
  auto* table = static_cast<Angle*>(
      context.scratch->at_least(static_cast<std::size_t>(places * half) * sizeof(Angle), context.stream));
  for_elements(context.stream, places, half, Angles{tokens, table, half, call.base, call.back}, "rotary");
  by_type(call.query.type, [&](auto zero) {
    using T = decltype(zero);
    const auto turn = [&](const Tensor& in, const Tensor& out) {
      for_packs<kLanes<T>>(context.stream, in.rows, in.columns / 2,
                           Turn<T>{rows_of<T>(in), rows_of<T>(out), tokens, table, half}, "rotary");
    };
    turn(call.query, call.query_output);
    turn(call.key, call.key_output);
  });
}

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
    const Rows<T> dy = rows_of<T>(call.output_gradient), in = rows_of<T>(call.input), dx = rows_of<T>(call.input_gradient);
    const bool wide = in_packs<kMost>(dy) && in_packs<kMost>(in) && in_packs<kMost>(dx);
    launch(context.stream, "activation backward", wide ? activate_backward<kMost, T> : activate_backward<1, T>,
           {some_blocks(dy.rows)}, dy, in, floats(call.weights), dx, floats(call.weights_gradient), call.kind);
  });
}

void run(const Context& context, const Add& call) {
  by_type(call.output.type, [&](auto zero) {
    using T = decltype(zero);
    Sum<T> sum{{}, data<T>(call.bias), rows_of<T>(call.output)};
    for (std::size_t i = 0; i < call.inputs.size(); ++i) sum.in[i] = rows_of<T>(call.inputs[i]);
    for_packs<kLanes<T>>(context.stream, call.output.rows, call.output.columns, sum, "add");
  });
}

void run(const Context& context, const Dropout& call) {
  by_type(call.output.type, [&](auto zero) {
    using T = decltype(zero);
    for_packs<kLanes<T>>(
        context.stream, call.output.rows, call.output.columns,
        Drop<T>{rows_of<T>(call.input), rows_of<T>(call.residual), rows_of<T>(call.output), data<T>(call.bias),
                rows_of<std::uint8_t>(call.mask), call.rate, call.seed, call.draws},
        "dropout");
  });
}

void run(const Context& context, const DropoutBackward& call) {
  by_type(call.output_gradient.type, [&](auto zero) {
    using T = decltype(zero);
    for_packs<kLanes<T>>(context.stream, call.output_gradient.rows, call.output_gradient.columns,
                         DropBack<T>{rows_of<T>(call.output_gradient), rows_of<T>(call.input_gradient),
                                     rows_of<std::uint8_t>(call.mask), call.rate},
                         "dropout backward");
  });
}

void run(const Context& context, const BiasGradient& call) {
  constexpr const char* kWhat = "bias gradient";
  const Tensor& in = call.output_gradient;
  const auto down = static_cast<unsigned>(std::clamp<std::int64_t>(in.rows / 64, 1, 128));
  by_type(in.type, [&](auto zero) {
    using T = decltype(zero);
    const bool wide = in_packs<kLanes<T>>(rows_of<T>(in));
    const std::int64_t columns = 32 * (wide ? kLanes<T> : 1);  // of a block
    sum_in_fp32(
        context, std::array{call.bias_gradient},
        [&](const auto& sums, void* /*memory*/) {
          launch(context.stream, kWhat, wide ? column_sums<kLanes<T>, T> : column_sums<1, T>,
                 {dim3(static_cast<unsigned>((in.columns + columns - 1) / columns), down)}, rows_of<T>(in), sums[0].data);
        },
        kWhat);
  });
}

void run(const Context& context, const Cast& call) {
  by_types(call.input.type, call.output.type, [&](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    for_packs<kLanes<From, To>>(context.stream, call.input.rows, call.input.columns,
                                Convert<From, To>{rows_of<From>(call.input), rows_of<To>(call.output)}, "cast");
  });
}

void run(const Context& context, const Randomise& call) {
  by_any(call.output.type, [&](auto zero) {
    using T = decltype(zero);
    for_elements(context.stream, call.output.rows, call.output.columns,
                 Fill<T>{rows_of<T>(call.output), call.mean, call.spread, call.seed, call.draws}, "randomise");
  });
}

}  // namespace rehearse::kernels::cuda
