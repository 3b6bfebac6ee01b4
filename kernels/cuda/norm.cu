// One block a vector; sums of squares and products in fp32.
#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/sums.cuh"

namespace rehearse::kernels::cuda {

namespace {

struct Moments {
  float mean, scale;
};

template <typename T>
__device__ Moments moments(const T* x, std::int64_t width, bool centred, float epsilon) {
  float sum = 0;
  if (centred) {
    for (std::int64_t c = threadIdx.x; c < width; c += kThreads) sum += to_float(x[c]);
    sum = block_sum(sum);
  }
  const float mean = sum / static_cast<float>(width);
  float squares = 0;
  for (std::int64_t c = threadIdx.x; c < width; c += kThreads) {
    const float d = to_float(x[c]) - mean;
    squares += d * d;
  }
  return {mean, rsqrtf(block_sum(squares) / static_cast<float>(width) + epsilon)};
}

template <typename T, typename To>
__global__ void normalise(Rows<T> in, const T* weight, const T* bias, Rows<To> out, NormShape shape) {
  const std::int64_t width = in.columns / shape.groups;
  for (std::int64_t v = blockIdx.x; v < in.rows * shape.groups; v += gridDim.x) {
    const std::int64_t first = v % shape.groups * width;
    const T* x = in.row(v / shape.groups) + first;
    To* y = out.row(v / shape.groups) + first;
    const Moments m = moments(x, width, shape.centred, shape.epsilon);
    for (std::int64_t c = threadIdx.x; c < width; c += kThreads)
      y[c] = from_float<To>((to_float(x[c]) - m.mean) * m.scale * to_float(weight[c]) +
                            (bias == nullptr ? 0.0F : to_float(bias[c])));
  }
}

template <typename T>
__global__ void input_gradient(Rows<T> dy, Rows<T> in, const T* weight, Rows<T> dx, NormShape shape) {
  const std::int64_t width = in.columns / shape.groups;
  for (std::int64_t v = blockIdx.x; v < in.rows * shape.groups; v += gridDim.x) {
    const std::int64_t r = v / shape.groups, first = v % shape.groups * width;
    const T *x = in.row(r) + first, *gradient = dy.row(r) + first;
    T* out = dx.row(r) + first;
    const Moments m = moments(x, width, shape.centred, shape.epsilon);
    float sum = 0, with_input = 0;
    for (std::int64_t c = threadIdx.x; c < width; c += kThreads) {
      const float g = to_float(gradient[c]) * to_float(weight[c]);
      sum += g;
      with_input += g * (to_float(x[c]) - m.mean) * m.scale;
    }
    const float mean = shape.centred ? block_sum(sum) / static_cast<float>(width) : 0.0F;
    with_input = block_sum(with_input) / static_cast<float>(width);
    for (std::int64_t c = threadIdx.x; c < width; c += kThreads) {
      const float y = (to_float(x[c]) - m.mean) * m.scale;
      out[c] = from_float<T>(m.scale * (to_float(gradient[c]) * to_float(weight[c]) - mean - y * with_input));
    }
  }
}

// Blocks take vectors in turn, keep the sums of every column in shared memory, and add them at the end.
template <typename T>
__global__ void weight_gradient(Rows<T> dy, Rows<T> in, float* dweight, float* dbias, NormShape shape) {
  float* const weight_sums = shared_floats();
  const std::int64_t width = in.columns / shape.groups;
  float* bias_sums = weight_sums + width;
  for (std::int64_t c = threadIdx.x; c < width; c += kThreads) weight_sums[c] = bias_sums[c] = 0;
  for (std::int64_t v = blockIdx.x; v < in.rows * shape.groups; v += gridDim.x) {
    const std::int64_t r = v / shape.groups, first = v % shape.groups * width;
    const T *x = in.row(r) + first, *gradient = dy.row(r) + first;
    const Moments m = moments(x, width, shape.centred, shape.epsilon);
    for (std::int64_t c = threadIdx.x; c < width; c += kThreads) {  // a column is always the same thread's
      const float g = to_float(gradient[c]);
      weight_sums[c] += g * (to_float(x[c]) - m.mean) * m.scale;
      bias_sums[c] += g;
    }
  }
  for (std::int64_t c = threadIdx.x; c < width; c += kThreads) {
    atomicAdd(dweight + c, weight_sums[c]);
    if (dbias != nullptr) atomicAdd(dbias + c, bias_sums[c]);
  }
}

unsigned vectors(const Tensor& tensor, const NormShape& shape) {
  return some_blocks(tensor.rows * shape.groups);
}

}  // namespace

void run(const Context& context, const Norm& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    const auto into = [&](auto none) {
      using To = decltype(none);
      launch(context.stream, "norm", normalise<T, To>, {vectors(call.input, call.shape)}, rows_of<T>(call.input),
             data<T>(call.weight), data<T>(call.bias), rows_of<To>(call.output), call.shape);
    };
    if (call.output.type == call.input.type) return into(zero);
    by_fp8(call.output.type, into);
  });
}

void run(const Context& context, const NormInputGradient& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    launch(context.stream, "norm input gradient", input_gradient<T>, {vectors(call.input, call.shape)},
           rows_of<T>(call.output_gradient), rows_of<T>(call.input), data<T>(call.weight),
           rows_of<T>(call.input_gradient), call.shape);
  });
}

void run(const Context& context, const NormWeightGradient& call) {
  constexpr std::int64_t kMostBlocks = 256;  // each adds to every column once
  constexpr const char* kWhat = "norm weight gradient";
  const auto bytes = static_cast<std::size_t>(2 * (call.input.columns / call.shape.groups)) * sizeof(float);
  const unsigned blocks = some_blocks(std::min(kMostBlocks, call.input.rows * call.shape.groups));
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    allow_shared(weight_gradient<T>, bytes);
    sum_in_fp32(
        context, std::array{call.weight_gradient, call.bias_gradient},
        [&](const auto& sums) {
          launch(context.stream, kWhat, weight_gradient<T>, {blocks, kThreads, bytes}, rows_of<T>(call.output_gradient),
                 rows_of<T>(call.input), sums[0].data, sums[1].data, call.shape);
        },
        kWhat);
  });
}

}  // namespace rehearse::kernels::cuda
