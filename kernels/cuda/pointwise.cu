// Kernels that pass over memory once: a thread an element, or a pair of them.
#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/sums.cuh"
#include "kernels/philox.h"

namespace rehearse::kernels::cuda {

namespace {

template <typename T>
struct Turn {
  Rows<T> in, out;
  DeviceTokens tokens;
  std::int64_t width;
  float base;
  bool back;
  __device__ void operator()(std::int64_t r, std::int64_t pair) const {
    const std::int64_t half = width / 2, first = pair / half * width + pair % half;
    const double frequency = pow(static_cast<double>(base), -2.0 * static_cast<double>(pair % half) / static_cast<double>(width));
    double sine, cosine;
    sincos(static_cast<double>(tokens.position(r)) * frequency, &sine, &cosine);
    const auto c = static_cast<float>(cosine);
    const float s = static_cast<float>(back ? -sine : sine);
    const float a = in.load(r, first), b = in.load(r, first + half);
    out.store(r, first, a * c - b * s);
    out.store(r, first + half, b * c + a * s);
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
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    const float x = in.load(r, c), scale = weights == nullptr ? 1.0F : weights[r];
    const float positive = fmaxf(x, 0.0F);
    out.store(r, c,
              scale * (kind == ActivationKind::swiglu ? x * sigmoid(x) * in.load(r, c + out.columns)
                       : kind == ActivationKind::gelu ? gelu(x)
                                                      : positive * positive));
  }
};

// One block a row, which also sums the gradient of the row's weight.
template <typename T>
__global__ void activate_backward(Rows<T> dy, Rows<T> in, const float* weights, Rows<T> dx, float* dweights,
                                  ActivationKind kind) {
  for (std::int64_t r = blockIdx.x; r < dy.rows; r += gridDim.x) {
    const float scale = weights == nullptr ? 1.0F : weights[r];
    float dot = 0;
    for (std::int64_t c = threadIdx.x; c < dy.columns; c += kThreads) {
      const float x = in.load(r, c), g = dy.load(r, c);
      if (kind == ActivationKind::swiglu) {
        const float up = in.load(r, c + dy.columns), s = sigmoid(x);
        dot += g * x * s * up;
        dx.store(r, c, scale * g * up * s * (1 + x * (1 - s)));
        dx.store(r, c + dy.columns, scale * g * x * s);
      } else if (kind == ActivationKind::gelu) {
        dot += g * gelu(x);
        dx.store(r, c, scale * g * gelu_slope(x));
      } else {
        const float positive = fmaxf(x, 0.0F);
        dot += g * positive * positive;
        dx.store(r, c, scale * g * 2 * positive);
      }
    }
    dot = block_sum(dot);
    if (threadIdx.x == 0 && dweights != nullptr) dweights[r] = dot;
  }
}

template <typename T>
struct Sum {
  Rows<T> in[4];
  const T* bias;
  Rows<T> out;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    float sum = bias == nullptr ? 0.0F : to_float(bias[c]);
    for (const Rows<T>& each : in) {
      if (each.data != nullptr) sum += each.load(r, c);
    }
    out.store(r, c, sum);
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
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    const std::int64_t i = r * out.columns + c;
    const std::int64_t number = draws.first + i / draws.run * draws.stride + i % draws.run;
    const bool kept = philox_uniform(seed, static_cast<std::uint64_t>(number)) >= rate;
    mask.row(r)[c] = kept ? 1 : 0;
    const float value = in.load(r, c) + (bias == nullptr ? 0.0F : to_float(bias[c]));
    out.store(r, c, (residual.data == nullptr ? 0.0F : residual.load(r, c)) + (kept ? value / (1 - rate) : 0.0F));
  }
};

template <typename T>
struct DropBack {
  Rows<T> dy, dx;
  Rows<std::uint8_t> mask;
  float rate;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    dx.store(r, c, mask.row(r)[c] != 0 ? dy.load(r, c) / (1 - rate) : 0.0F);
  }
};

// A block takes 32 columns and a stretch of rows: eight rows at a time, then one sum over them.
template <typename T>
__global__ void column_sums(Rows<T> in, float* sums) {
  __shared__ float part[kThreads];
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x % 32;
  float sum = 0;
  for (std::int64_t r = blockIdx.y * 8 + threadIdx.x / 32; r < in.rows; r += std::int64_t{gridDim.y} * 8) {
    if (column < in.columns) sum += in.load(r, column);
  }
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= 32 || column >= in.columns) return;
  for (int i = 1; i < 8; ++i) sum += part[threadIdx.x + 32 * i];
  atomicAdd(sums + column, sum);
}

template <typename From, typename To>
struct Convert {
  Rows<From> in;
  Rows<To> out;
  __device__ void operator()(std::int64_t r, std::int64_t c) const { out.store(r, c, in.load(r, c)); }
};

template <typename T>
struct Fill {
  Rows<T> out;
  float mean, spread;
  std::uint64_t seed;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    const auto index = static_cast<std::uint64_t>(r * out.columns + c);
    out.store(r, c, mean + spread * (2 * philox_uniform(seed, index) - 1));
  }
};

}  // namespace

void run(const Context& context, const Rotary& call) {
  by_type(call.query.type, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t width = call.query.columns / call.heads;
    const auto turn = [&](const Tensor& in, const Tensor& out) {
      for_elements(context.stream, in.rows, in.columns / 2,
                   Turn<T>{rows_of<T>(in), rows_of<T>(out), on_device(call.tokens), width, call.base, call.back},
                   "rotary");
    };
    turn(call.query, call.query_output);
    turn(call.key, call.key_output);
  });
}

void run(const Context& context, const Activation& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    for_elements(context.stream, call.output.rows, call.output.columns,
                 Activate<T>{rows_of<T>(call.input), rows_of<T>(call.output), floats(call.weights),
                             call.kind},
                 "activation");
  });
}

void run(const Context& context, const ActivationBackward& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    launch(context.stream, "activation backward", activate_backward<T>, {some_blocks(call.output_gradient.rows)},
           rows_of<T>(call.output_gradient), rows_of<T>(call.input), floats(call.weights),
           rows_of<T>(call.input_gradient), floats(call.weights_gradient), call.kind);
  });
}

void run(const Context& context, const Add& call) {
  by_type(call.output.type, [&](auto zero) {
    using T = decltype(zero);
    Sum<T> sum{{}, data<T>(call.bias), rows_of<T>(call.output)};
    for (std::size_t i = 0; i < call.inputs.size(); ++i) sum.in[i] = rows_of<T>(call.inputs[i]);
    for_elements(context.stream, call.output.rows, call.output.columns, sum, "add");
  });
}

void run(const Context& context, const Dropout& call) {
  by_type(call.output.type, [&](auto zero) {
    using T = decltype(zero);
    for_elements(context.stream, call.output.rows, call.output.columns,
                 Drop<T>{rows_of<T>(call.input), rows_of<T>(call.residual), rows_of<T>(call.output),
                         data<T>(call.bias), rows_of<std::uint8_t>(call.mask), call.rate, call.seed, call.draws},
                 "dropout");
  });
}

void run(const Context& context, const DropoutBackward& call) {
  by_type(call.output_gradient.type, [&](auto zero) {
    using T = decltype(zero);
    for_elements(context.stream, call.output_gradient.rows, call.output_gradient.columns,
                 DropBack<T>{rows_of<T>(call.output_gradient), rows_of<T>(call.input_gradient),
                             rows_of<std::uint8_t>(call.mask), call.rate},
                 "dropout backward");
  });
}

void run(const Context& context, const BiasGradient& call) {
  constexpr const char* kWhat = "bias gradient";
  const Tensor& in = call.output_gradient;
  const auto across = static_cast<unsigned>((in.columns + 31) / 32);
  const auto down = static_cast<unsigned>(std::clamp<std::int64_t>(in.rows / 64, 1, 128));
  by_type(in.type, [&](auto zero) {
    using T = decltype(zero);
    sum_in_fp32(
        context, std::array{call.bias_gradient},
        [&](const auto& sums) {
          launch(context.stream, kWhat, column_sums<T>, {dim3(across, down)}, rows_of<T>(in), sums[0].data);
        },
        kWhat);
  });
}

void run(const Context& context, const Cast& call) {
  by_types(call.input.type, call.output.type, [&](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    for_elements(context.stream, call.input.rows, call.input.columns,
                 Convert<From, To>{rows_of<From>(call.input), rows_of<To>(call.output)}, "cast");
  });
}

void run(const Context& context, const Randomise& call) {
  by_any(call.output.type, [&](auto zero) {
    using T = decltype(zero);
    for_elements(context.stream, call.output.rows, call.output.columns,
                 Fill<T>{rows_of<T>(call.output), call.mean, call.spread, call.seed}, "randomise");
  });
}

}  // namespace rehearse::kernels::cuda
