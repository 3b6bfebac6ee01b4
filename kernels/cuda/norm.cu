// One block a vector; sums of squares and products in fp32.
#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/sums.cuh"

namespace rehearse::kernels::cuda {

namespace {

struct Moments {
  float mean, scale;
};

// Every N-th element of a vector that is this thread's.
template <int N, typename Each>
__device__ void each_pack(std::int64_t width, const Each& each) {
  for (std::int64_t c = std::int64_t{threadIdx.x} * N; c < width; c += kThreads * N) each(c);
}

template <int N, typename T>
__device__ Moments moments(const T* x, std::int64_t width, bool centred, float epsilon) {
  float sum = 0;
  if (centred) {
    each_pack<N>(width, [&](std::int64_t c) {
      for (const float value : load<N>(x + c).x) sum += value;
    });
    sum = block_sum(sum);
  }
  const float mean = sum / static_cast<float>(width);
  float squares = 0;
  each_pack<N>(width, [&](std::int64_t c) {
    for (const float value : load<N>(x + c).x) squares += (value - mean) * (value - mean);
  });
  return {mean, rsqrtf(block_sum(squares) / static_cast<float>(width) + epsilon)};
}

template <int N, typename T, typename To>
__global__ void normalise(Rows<T> in, const T* weight, const T* bias, Rows<To> out, NormShape shape) {
  const std::int64_t width = in.columns / shape.groups;
  for (std::int64_t v = blockIdx.x; v < in.rows * shape.groups; v += gridDim.x) {
    const std::int64_t first = v % shape.groups * width;
    const T* x = in.row(v / shape.groups) + first;
    To* y = out.row(v / shape.groups) + first;
    const Moments m = moments<N>(x, width, shape.centred, shape.epsilon);
    each_pack<N>(width, [&](std::int64_t c) {
      const Lanes<N> value = load<N>(x + c), factor = load<N>(weight + c);
      Lanes<N> shift = {};
      if (bias != nullptr) shift = load<N>(bias + c);
      store(y + c, Lanes<N>::of([&](int i) { return (value.x[i] - m.mean) * m.scale * factor.x[i] + shift.x[i]; }));
    });
  }
}

template <int N, typename T>
__global__ void input_gradient(Rows<T> dy, Rows<T> in, const T* weight, Rows<T> dx, NormShape shape) {
  const std::int64_t width = in.columns / shape.groups;
  for (std::int64_t v = blockIdx.x; v < in.rows * shape.groups; v += gridDim.x) {
    const std::int64_t r = v / shape.groups, first = v % shape.groups * width;
    const T *x = in.row(r) + first, *gradient = dy.row(r) + first;
    T* out = dx.row(r) + first;
    const Moments m = moments<N>(x, width, shape.centred, shape.epsilon);
    // Of the weighted gradient and the normalised input at one place.
    const auto each = [&](const auto& body) {
      each_pack<N>(width, [&](std::int64_t c) {
        const Lanes<N> g = load<N>(gradient + c), factor = load<N>(weight + c), value = load<N>(x + c);
        body(c, Lanes<N>::of([&](int i) { return g.x[i] * factor.x[i]; }),
             Lanes<N>::of([&](int i) { return (value.x[i] - m.mean) * m.scale; }));
      });
    };
    float sum = 0, with_input = 0;
    each([&](std::int64_t /*c*/, const Lanes<N>& g, const Lanes<N>& y) {
      for (int i = 0; i < N; ++i) {
        sum += g.x[i];
        with_input += g.x[i] * y.x[i];
      }
    });
    const float mean = shape.centred ? block_sum(sum) / static_cast<float>(width) : 0.0F;
    with_input = block_sum(with_input) / static_cast<float>(width);
    each([&](std::int64_t c, const Lanes<N>& g, const Lanes<N>& y) {
      store(out + c, Lanes<N>::of([&](int i) { return m.scale * (g.x[i] - mean - y.x[i] * with_input); }));
    });
  }
}

// Blocks take vectors in turn, keep the sums of every column in shared memory, and add them at the end.
template <int N, typename T>
__global__ void weight_gradient(Rows<T> dy, Rows<T> in, float* dweight, float* dbias, NormShape shape) {
  float* const weight_sums = shared_floats();
  const std::int64_t width = in.columns / shape.groups;
  float* bias_sums = weight_sums + width;
  each_pack<N>(width, [&](std::int64_t c) {
    for (int i = 0; i < N; ++i) weight_sums[c + i] = bias_sums[c + i] = 0;
  });
  for (std::int64_t v = blockIdx.x; v < in.rows * shape.groups; v += gridDim.x) {
    const std::int64_t r = v / shape.groups, first = v % shape.groups * width;
    const T *x = in.row(r) + first, *gradient = dy.row(r) + first;
    const Moments m = moments<N>(x, width, shape.centred, shape.epsilon);
    each_pack<N>(width, [&](std::int64_t c) {  // a column is always the same thread's
      const Lanes<N> g = load<N>(gradient + c), value = load<N>(x + c);
      for (int i = 0; i < N; ++i) {
        weight_sums[c + i] += g.x[i] * (value.x[i] - m.mean) * m.scale;
        bias_sums[c + i] += g.x[i];
      }
    });
  }
  __syncthreads();  // from here on a column is another thread's
  for (std::int64_t c = threadIdx.x; c < width; c += kThreads) {
    atomicAdd(dweight + c, weight_sums[c]);
    if (dbias != nullptr) atomicAdd(dbias + c, bias_sums[c]);
  }
}

// Vectors of several groups side by side.
template <int N, typename T>
bool in_packs(const Rows<T>& rows, std::int64_t groups) {
  return cuda::in_packs<N>(rows) && rows.columns / groups % N == 0;
}
using cuda::in_packs;

unsigned vectors(const Tensor& tensor, const NormShape& shape) {
  return some_blocks(tensor.rows * shape.groups);
}

}  // namespace

void run(const Context& context, const Norm& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    const auto into = [&](auto none) {
      using To = decltype(none);
      constexpr int kMost = kLanes<T, To>;
      const Rows<T> in = rows_of<T>(call.input);
      const Rows<To> out = rows_of<To>(call.output);
      const T *weight = data<T>(call.weight), *bias = data<T>(call.bias);
      const bool wide = in_packs<kMost>(in, call.shape.groups) && in_packs<kMost>(out) && in_packs<kMost>(weight) && in_packs<kMost>(bias);
      launch(context.stream, "norm", wide ? normalise<kMost, T, To> : normalise<1, T, To>,
             {vectors(call.input, call.shape)}, in, weight, bias, out, call.shape);
    };
    if (call.output.type == call.input.type) return into(zero);
    by_fp8(call.output.type, into);
  });
}

void run(const Context& context, const NormInputGradient& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kMost = kLanes<T>;
    const Rows<T> dy = rows_of<T>(call.output_gradient), in = rows_of<T>(call.input), dx = rows_of<T>(call.input_gradient);
    const T* weight = data<T>(call.weight);
    const bool wide = in_packs<kMost>(in, call.shape.groups) && in_packs<kMost>(dy) && in_packs<kMost>(dx) && in_packs<kMost>(weight);
    launch(context.stream, "norm input gradient", wide ? input_gradient<kMost, T> : input_gradient<1, T>,
           {vectors(call.input, call.shape)}, dy, in, weight, dx, call.shape);
  });
}

void run(const Context& context, const NormWeightGradient& call) {
  constexpr std::int64_t kMostBlocks = 512;  // each adds to every column once
  constexpr const char* kWhat = "norm weight gradient";
  const auto bytes = static_cast<std::size_t>(2 * (call.input.columns / call.shape.groups)) * sizeof(float);
  const unsigned blocks = some_blocks(std::min(kMostBlocks, call.input.rows * call.shape.groups));
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    const Rows<T> dy = rows_of<T>(call.output_gradient), in = rows_of<T>(call.input);
    const bool wide = in_packs<kLanes<T>>(in, call.shape.groups) && in_packs<kLanes<T>>(dy);
    auto* const kernel = wide ? weight_gradient<kLanes<T>, T> : weight_gradient<1, T>;
    allow_shared(kernel, bytes);
    sum_in_fp32(
        context, std::array{call.weight_gradient, call.bias_gradient},
        [&](const auto& sums) {
          launch(context.stream, kWhat, kernel, {blocks, kThreads, bytes}, dy, in, sums[0].data, sums[1].data,
                 call.shape);
        },
        kWhat);
  });
}

}  // namespace rehearse::kernels::cuda
