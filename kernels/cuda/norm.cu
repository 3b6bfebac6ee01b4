// One block a vector; sums of squares and products in fp32.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/fp8.cuh"
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
  for (std::int64_t c = std::int64_t{threadIdx.x} * N; c < width; c += std::int64_t{blockDim.x} * N) each(c);
}

// Of some numbers: how many, their mean, and the sum of the squares of what they are off it.
struct Some {
  float count, mean, squares;
};

// Chan, Golub and LeVeque 1979, Updating formulae and a pairwise algorithm for computing sample variances, (2.1).
__device__ inline Some together(const Some& a, const Some& b) {
  const float count = a.count + b.count, apart = b.mean - a.mean;
  if (count == 0) return a;
  const float share = b.count / count;
  return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

// Every thread gets the result.
__device__ inline Some over_block(Some some) {
  __shared__ Some of_warps[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) {
    constexpr unsigned kAll = 0xffffffffU;
    some = together(some, {__shfl_xor_sync(kAll, some.count, offset), __shfl_xor_sync(kAll, some.mean, offset),
                           __shfl_xor_sync(kAll, some.squares, offset)});
  }
  __syncthreads();  // the last use of `of_warps` is over
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = some;
  __syncthreads();
  some = of_warps[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) some = together(some, of_warps[warp]);
  return some;
}

template <int N, typename T>
__device__ Moments moments(const T* x, std::int64_t width, bool centred, float epsilon) {
  Some some = {};
  if (centred) {
    each_pack<N>(width, [&](std::int64_t c) {
      for (const float value : load<N>(x + c).x) some.mean += value;
      some.count += N;
    });
    if (some.count > 0) some.mean /= some.count;
  }
  each_pack<N>(width, [&](std::int64_t c) {
    for (const float value : load<N>(x + c).x) some.squares += (value - some.mean) * (value - some.mean);
  });
  if (centred) {
    some = over_block(some);
  } else {
    some.squares = block_sum(some.squares);
  }
  return {some.mean, rsqrtf(some.squares / static_cast<float>(width) + epsilon)};
}

// Weight and bias of a vector: their columns, and how far on those of a row's next vector are, 0 where all share them.
template <typename T>
struct Affine {
  const T *weight, *bias;
  std::int64_t step;
  Affine(const Tensor& weights, const Tensor& biases, const Tensor& in, const NormShape& shape)
      : weight(data<T>(weights)),
        bias(data<T>(biases)),
        step(weights.columns == in.columns ? in.columns / shape.groups : 0) {}
};

template <int N, typename T, typename To>
__global__ void normalise(Rows<T> in, Affine<T> affine, Rows<To> out, NormShape shape) {
  const std::int64_t width = in.columns / shape.groups;
  for (std::int64_t v = blockIdx.x; v < in.rows * shape.groups; v += gridDim.x) {
    const std::int64_t first = v % shape.groups * width, own = v % shape.groups * affine.step;
    const T* x = in.row(v / shape.groups) + first;
    To* y = out.row(v / shape.groups) + first;
    const Moments m = moments<N>(x, width, shape.centred, shape.epsilon);
    each_pack<N>(width, [&](std::int64_t c) {
      const Lanes<N> value = load<N>(x + c), factor = load<N>(affine.weight + own + c);
      Lanes<N> shift = {};
      if (affine.bias != nullptr) shift = load<N>(affine.bias + own + c);
      store(y + c, Lanes<N>::of([&](int i) { return (value.x[i] - m.mean) * m.scale * factor.x[i] + shift.x[i]; }));
    });
  }
}

template <int N, typename T>
__global__ void input_gradient(Rows<T> dy, Rows<T> in, Affine<T> affine, Rows<T> dx, NormShape shape) {
  const std::int64_t width = in.columns / shape.groups;
  for (std::int64_t v = blockIdx.x; v < in.rows * shape.groups; v += gridDim.x) {
    const std::int64_t r = v / shape.groups, first = v % shape.groups * width;
    const T *x = in.row(r) + first, *gradient = dy.row(r) + first;
    const T* const weight = affine.weight + v % shape.groups * affine.step;
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

template <int N, typename T>
__global__ void all_moments(Rows<T> in, Moments* out, NormShape shape) {
  const std::int64_t width = in.columns / shape.groups;
  for (std::int64_t v = blockIdx.x; v < in.rows * shape.groups; v += gridDim.x) {
    const T* x = in.row(v / shape.groups) + v % shape.groups * width;
    const Moments m = moments<N>(x, width, shape.centred, shape.epsilon);
    if (threadIdx.x == 0) out[v] = m;
  }
}

// From the moments of every vector. A row holds the weight's `columns` once, or once in each vector.
template <int N, typename T>
__global__ void weight_gradient(Rows<T> dy, Rows<T> in, const Moments* all, float* dweight, float* dbias,
                                NormShape shape, std::int64_t columns) {
  const std::int64_t width = in.columns / shape.groups, times = in.columns / columns;
  add_up_columns<N>(in.rows * times, columns, {dweight, dbias},
                    [&](std::int64_t part, std::int64_t c, float (&sums)[2][N]) {
                      const std::int64_t r = part / times, at = part % times * columns + c;
                      const Moments m = all[r * shape.groups + at / width];
                      const Lanes<N> g = load<N>(dy.row(r) + at), value = load<N>(in.row(r) + at);
                      for (int i = 0; i < N; ++i) {
                        sums[0][i] += g.x[i] * (value.x[i] - m.mean) * m.scale;
                        sums[1][i] += g.x[i];
                      }
                    });
}

// Vectors of several groups side by side.
template <int N, typename T>
bool in_packs(const Rows<T>& rows, std::int64_t groups) {
  return cuda::in_packs<N>(rows) && rows.columns / groups % N == 0;
}
using cuda::in_packs;

// One block a vector, of as many threads as have a few packs of so many each.
template <typename T>
Grid by_vector(const Rows<T>& rows, const NormShape& shape, int lanes) {
  constexpr std::int64_t kWarp = 32, kPacks = 4;
  const std::int64_t threads = (rows.columns / shape.groups / lanes / kPacks + kWarp - 1) / kWarp * kWarp;
  return {some_blocks(rows.rows * shape.groups),
          static_cast<unsigned>(std::clamp<std::int64_t>(threads, kWarp, kThreads))};
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
      const Affine<T> affine(call.weight, call.bias, call.input, call.shape);
      const bool wide = in_packs<kMost>(in, call.shape.groups) && in_packs<kMost>(out) &&
                        in_packs<kMost>(affine.weight) && in_packs<kMost>(affine.bias);
      launch(context.stream, "norm", wide ? normalise<kMost, T, To> : normalise<1, T, To>,
             by_vector(in, call.shape, wide ? kMost : 1), in, affine, out, call.shape);
    };
    if (call.output.type == call.input.type) return into(zero);
    by_fp8(call.output.type, into);
  });
}

void run(const Context& context, const NormInputGradient& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kMost = kLanes<T>;
    const Rows<T> dy = rows_of<T>(call.output_gradient), in = rows_of<T>(call.input);
    const Rows<T> dx = rows_of<T>(call.input_gradient);
    const Affine<T> affine(call.weight, {}, call.input, call.shape);
    const bool wide = in_packs<kMost>(in, call.shape.groups) && in_packs<kMost>(dy) && in_packs<kMost>(dx) &&
                      in_packs<kMost>(affine.weight);
    launch(context.stream, "norm input gradient", wide ? input_gradient<kMost, T> : input_gradient<1, T>,
           by_vector(in, call.shape, wide ? kMost : 1), dy, in, affine, dx, call.shape);
  });
}

// The moments once more, then sums of columns.
template <int N, typename T>
void sum_weight_gradients(const Context& context, const NormWeightGradient& call, const Rows<T>& dy, const Rows<T>& in,
                          Moments* moments, float* dweight, float* dbias) {
  constexpr const char* kWhat = "norm weight gradient";
  const std::int64_t columns = call.weight_gradient.columns, times = in.columns / columns;
  launch(context.stream, kWhat, all_moments<N, T>, by_vector(in, call.shape, N), in, moments, call.shape);
  launch(context.stream, kWhat, weight_gradient<N, T>, {blocks_of_columns<N>(in.rows * times, columns)}, dy, in, moments,
         dweight, dbias, call.shape, columns);
}

void run(const Context& context, const NormWeightGradient& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kMost = kLanes<T>;
    const Rows<T> dy = rows_of<T>(call.output_gradient), in = rows_of<T>(call.input);
    const auto moments_bytes = static_cast<std::size_t>(in.rows * call.shape.groups) * sizeof(Moments);
    sum_in_fp32(
        context, std::array{call.weight_gradient, call.bias_gradient},
        [&](const auto& sums, void* memory) {
          auto* const moments = static_cast<Moments*>(memory);
          if (in_packs<kMost>(in, call.shape.groups) && in_packs<kMost>(dy))
            return sum_weight_gradients<kMost>(context, call, dy, in, moments, sums[0].data, sums[1].data);
          sum_weight_gradients<1>(context, call, dy, in, moments, sums[0].data, sums[1].data);
        },
        "norm weight gradient", moments_bytes);
  });
}

}  // namespace rehearse::kernels::cuda
