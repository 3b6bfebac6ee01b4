// Norms and their gradients: one block a vector, which it reads once. Sums are fp32.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/sums.cuh"
#include "kernels/cuda/vectors.cuh"

namespace rehearse::kernels::cuda {

namespace {

constexpr const char* kWeightGradient = "norm weight gradient";

// Weight and bias of a row's first vector. `step` is the distance to those of the next vector, 0 where all
// share them.
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
__global__ void normalise(Rows<T> in, Affine<T> affine, Rows<To> out, NormShape shape, std::int64_t width) {
  const std::int64_t first = blockIdx.y * width, own = blockIdx.y * affine.step;
  for (std::int64_t r = blockIdx.x; r < in.rows; r += gridDim.x) {
    const Vector<N, T> x(in.row(r) + first, width);
    To* const y = out.row(r) + first;
    const Moments m = moments_of(x, width, shape);
    each_pack<N>(width, [&](int pack, std::int64_t c) {
      const Lanes<N> value = x.at(pack, c), factor = load<N>(affine.weight + own + c);
      Lanes<N> shift = {};
      if (affine.bias != nullptr) shift = load<N>(affine.bias + own + c);
      store(y + c, Lanes<N>::of([&](int i) { return (value.x[i] - m.mean) * m.scale * factor.x[i] + shift.x[i]; }));
    });
  }
}

template <int N, typename T>
__global__ void input_gradient(Rows<T> dy, Rows<T> in, Affine<T> affine, Rows<T> dx, NormShape shape,
                               std::int64_t width) {
  const std::int64_t first = blockIdx.y * width;
  const T* const weight = affine.weight + blockIdx.y * affine.step;
  const float share = 1 / static_cast<float>(width);
  for (std::int64_t r = blockIdx.x; r < in.rows; r += gridDim.x) {
    const Vector<N, T> x(in.row(r) + first, width), gradient(dy.row(r) + first, width);
    T* const out = dx.row(r) + first;
    const Moments m = moments_of(x, width, shape);
    // Visits weighted gradient and normalised input at each place.
    const auto each = [&](const auto& body) {
      each_pack<N>(width, [&](int pack, std::int64_t c) {
        const Lanes<N> g = gradient.at(pack, c), factor = load<N>(weight + c), value = x.at(pack, c);
        body(c, Lanes<N>::of([&](int i) { return g.x[i] * factor.x[i]; }),
             Lanes<N>::of([&](int i) { return (value.x[i] - m.mean) * m.scale; }));
      });
    };
    float sums[2] = {};  // of the gradient, and of gradient times input
    each([&](std::int64_t /*c*/, const Lanes<N>& g, const Lanes<N>& y) {
      for (int i = 0; i < N; ++i) {
        sums[0] += g.x[i];
        sums[1] += g.x[i] * y.x[i];
      }
    });
    block_sums(sums);
    const float mean = shape.centred ? sums[0] * share : 0.0F, with_input = sums[1] * share;
    each([&](std::int64_t c, const Lanes<N>& g, const Lanes<N>& y) {
      store(out + c, Lanes<N>::of([&](int i) { return m.scale * (g.x[i] - mean - y.x[i] * with_input); }));
    });
  }
}

template <int N, typename T>
__global__ void all_moments(Rows<T> in, Moments* out, NormShape shape, std::int64_t width) {
  for (std::int64_t r = blockIdx.x; r < in.rows; r += gridDim.x) {
    const Moments m = moments_of(Vector<N, T>(in.row(r) + blockIdx.y * width, width), width, shape);
    if (threadIdx.x == 0) out[r * shape.groups + blockIdx.y] = m;
  }
}

// For rows that fit into a block, dy and input are read once. A thread sums its own columns over the block's
// rows.
template <int N, int Numbers, typename T>
__global__ void kept_weight_gradient(Rows<T> dy, Rows<T> in, float* dweight, float* dbias, NormShape shape) {
  __shared__ float part[kThreads * N];
  float sums[kKept<N>][Numbers][N] = {};
  for (std::int64_t r = blockIdx.x; r < in.rows; r += gridDim.x) {
    const Vector<N, T> x(in.row(r), in.columns), gradient(dy.row(r), in.columns);
    const Moments m = moments_of(x, in.columns, shape);
    each_pack<N>(in.columns, [&](int pack, std::int64_t c) {
      if (pack >= kKept<N>) return;
      const Lanes<N> g = gradient.at(pack, c), value = x.at(pack, c);
      for (int i = 0; i < N; ++i) {
        sums[pack][0][i] += g.x[i] * (value.x[i] - m.mean) * m.scale;
        if constexpr (Numbers == 2) sums[pack][1][i] += g.x[i];
      }
    });
  }
  const std::int64_t step = std::int64_t{blockDim.x} * N;
  unrolled<kKept<N>>([&](int pack) {
    unrolled<Numbers>([&](int number) {
      __syncthreads();  // the last use of `part` is over
      for (int i = 0; i < N; ++i) part[threadIdx.x * N + i] = sums[pack][number][i];
      __syncthreads();
      float* const total = number == 0 ? dweight : dbias;  // neighbours add to neighbours
      for (std::int64_t c = threadIdx.x; c < step && pack * step + c < in.columns; c += blockDim.x)
        atomicAdd(total + pack * step + c, part[c]);
    });
  });
}

// Uses the moments of every vector. A row holds the weight's `columns` once, or once in each vector.
template <int N, typename T>
__global__ void weight_gradient(Rows<T> dy, Rows<T> in, const Moments* all, float* dweight, float* dbias,
                                NormShape shape, std::int64_t columns) {
  const std::int64_t width = in.columns / shape.groups, times = in.columns / columns, apart = columns / width;
  add_up_columns<N>(in.rows, columns, {dweight, dbias}, [&](std::int64_t r, std::int64_t c, float (&sums)[2][N]) {
    const Moments* moments = all + r * shape.groups + c / width;
    for (std::int64_t time = 0; time < times; ++time, moments += apart, c += columns) {
      const Moments m = *moments;
      const Lanes<N> g = load<N>(dy.row(r) + c), value = load<N>(in.row(r) + c);
      for (int i = 0; i < N; ++i) {
        sums[0][i] += g.x[i] * (value.x[i] - m.mean) * m.scale;
        sums[1][i] += g.x[i];
      }
    }
  });
}

}  // namespace

void run(const Context& context, const Norm& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    const auto into = [&](auto none) {
      using To = decltype(none);
      constexpr int kMax = kLanes<T, To>;
      const Rows<T> in = rows_of<T>(call.input);
      const Rows<To> out = rows_of<To>(call.output);
      const Affine<T> affine(call.weight, call.bias, call.input, call.shape);
      const bool wide = in_packs<kMax>(in, call.shape.groups) && in_packs<kMax>(out) &&
                        in_packs<kMax>(affine.weight) && in_packs<kMax>(affine.bias);
      launch(context.stream, "norm", wide ? normalise<kMax, T, To> : normalise<1, T, To>,
             by_vector(in, call.shape, wide ? kMax : 1), in, affine, out, call.shape,
             in.columns / call.shape.groups);
    };
    if (call.output.type == call.input.type) return into(zero);
    by_fp8(call.output.type, into);
  });
}

void run(const Context& context, const NormInputGradient& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kMax = kLanes<T>;
    const Rows<T> dy = rows_of<T>(call.output_gradient), in = rows_of<T>(call.input);
    const Rows<T> dx = rows_of<T>(call.input_gradient);
    const Affine<T> affine(call.weight, {}, call.input, call.shape);
    const bool wide = in_packs<kMax>(in, call.shape.groups) && in_packs<kMax>(dy) && in_packs<kMax>(dx) &&
                      in_packs<kMax>(affine.weight);
    launch(context.stream, "norm input gradient", wide ? input_gradient<kMax, T> : input_gradient<1, T>,
           by_vector(in, call.shape, wide ? kMax : 1), dy, in, affine, dx, call.shape,
           in.columns / call.shape.groups);
  });
}

// A block adds 4 bytes a column to memory, which must be little compared to the bytes it reads: 32 of 8 rows
// of bf16. kMax blocks are several for each SM of any GPU.
template <int N, typename T>
void keep_and_sum(const Context& context, const Rows<T>& dy, const Rows<T>& in, float* dweight, float* dbias,
                  const NormShape& shape) {
  constexpr std::int64_t kRows = 8, kMax = 1024;
  Grid grid = by_vector(in, shape, N);
  grid.blocks.x = static_cast<unsigned>(std::clamp<std::int64_t>(in.rows / kRows, 1, kMax));
  launch(context.stream, kWeightGradient,
         dbias == nullptr ? kept_weight_gradient<N, 1, T> : kept_weight_gradient<N, 2, T>, grid, dy, in, dweight,
         dbias, shape);
}

// Computes the moments again, then sums of columns.
template <int N, typename T>
void sum_weight_gradients(const Context& context, const NormWeightGradient& call, const Rows<T>& dy, const Rows<T>& in,
                          Moments* moments, float* dweight, float* dbias) {
  const std::int64_t columns = call.weight_gradient.columns;
  launch(context.stream, kWeightGradient, all_moments<N, T>, by_vector(in, call.shape, N), in, moments, call.shape,
         in.columns / call.shape.groups);
  launch(context.stream, kWeightGradient, weight_gradient<N, T>,
         {blocks_of_columns<N>(in.rows * in.columns / columns, columns)}, dy, in, moments, dweight, dbias, call.shape,
         columns);
}

template <int N, typename T>
void sum_in_packs(const Context& context, const NormWeightGradient& call, const Rows<T>& dy, const Rows<T>& in) {
  const bool kept = call.shape.groups == 1 && in.columns <= kMaxKept<N>;
  const auto vectors = static_cast<std::size_t>(in.rows * call.shape.groups);
  sum_in_fp32(
      context, std::array{call.weight_gradient, call.bias_gradient},
      [&](const auto& sums, void* memory) {
        if (kept) return keep_and_sum<N>(context, dy, in, sums[0].data, sums[1].data, call.shape);
        auto* const moments = static_cast<Moments*>(memory);
        sum_weight_gradients<N>(context, call, dy, in, moments, sums[0].data, sums[1].data);
      },
      kWeightGradient, kept ? 0 : vectors * sizeof(Moments));
}

void run(const Context& context, const NormWeightGradient& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kMax = kLanes<T>;
    const Rows<T> dy = rows_of<T>(call.output_gradient), in = rows_of<T>(call.input);
    if (in_packs<kMax>(in, call.shape.groups) && in_packs<kMax>(dy)) return sum_in_packs<kMax>(context, call, dy, in);
    sum_in_packs<1>(context, call, dy, in);
  });
}

}  // namespace rehearse::kernels::cuda
