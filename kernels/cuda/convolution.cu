// The causal convolution of a state space. A thread takes one channel of one token, its neighbours those beside it.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/scratch.h"
#include "kernels/cuda/silu.cuh"

namespace rehearse::kernels::cuda {

namespace {

constexpr int kMostTaps = 8;

template <typename T>
struct Filter {
  DeviceTokens tokens;
  Rows<T> in, weight;
  const T* bias;

  __device__ int taps() const { return static_cast<int>(weight.columns); }
  // Of neighbours in a sequence, how far apart their rows are.
  __device__ std::int64_t step() const { return tokens.position_major ? tokens.sequences : 1; }
  // The first tap whose input is not before the sequence.
  __device__ int first_tap(std::int64_t place) const {
    return place < taps() - 1 ? taps() - 1 - static_cast<int>(place) : 0;
  }
  __device__ std::int64_t row_of_tap(std::int64_t r, int tap) const { return r - (taps() - 1 - tap) * step(); }

  __device__ float before_silu(std::int64_t r, std::int64_t place, std::int64_t c) const {
    float sum = bias == nullptr ? 0.0F : to_float(bias[c]);
    for (int i = first_tap(place); i < taps(); ++i) sum += weight.load(c, i) * in.load(row_of_tap(r, i), c);
    return sum;
  }
};
template <typename T, typename Call>
Filter<T> filter_of(const Call& call) {
  return {on_device(call.tokens), rows_of<T>(call.input), rows_of<T>(call.weight), data<T>(call.bias)};
}

template <typename T>
struct Convolve {
  Filter<T> filter;
  Rows<T> out;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    out.store(r, c, silu(filter.before_silu(r, filter.tokens.place(r), c)));
  }
};

// Of all tokens that see this one, the gradient of what SiLU was given, once more.
template <typename T>
struct ConvolveBack {
  Filter<T> filter;
  Rows<T> dout, din;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    const std::int64_t place = filter.tokens.place(r), left = filter.tokens.length - 1 - place;
    float sum = 0;
    for (int i = filter.taps() - 1, ahead = 0; i >= 0 && ahead <= left; --i, ++ahead) {
      const std::int64_t other = r + ahead * filter.step();
      const float slope = silu_slope(filter.before_silu(other, place + ahead, c));
      sum += filter.weight.load(c, i) * dout.load(other, c) * slope;
    }
    din.store(r, c, sum);
  }
};

// sums: those of each tap, then the bias's, by channel.
template <typename T>
__global__ void convolution_weight_sums(Filter<T> filter, Rows<T> dout, Rows<float> sums) {
  float* totals[kMostTaps + 1];
  for (int i = 0; i <= kMostTaps; ++i) totals[i] = i <= filter.taps() ? sums.row(i) : nullptr;
  add_up_columns<1>(dout.rows, dout.columns, totals,
                    [&](std::int64_t r, std::int64_t c, float (&more)[kMostTaps + 1][1]) {
                      const std::int64_t place = filter.tokens.place(r);
                      const int first = filter.first_tap(place), taps = filter.taps();
                      const float g = dout.load(r, c) * silu_slope(filter.before_silu(r, place, c));
                      for (int i = 0; i <= kMostTaps; ++i) {
                        if (i == taps) more[i][0] += g;
                        if (i >= first && i < taps) more[i][0] += g * filter.in.load(filter.row_of_tap(r, i), c);
                      }
                    });
}

template <typename G>
struct AddTaps {
  Rows<float> sums;
  Rows<G> weight, bias;
  __device__ void operator()(std::int64_t i, std::int64_t c) const {
    if (i < weight.columns) return weight.store(c, i, weight.load(c, i) + sums.load(i, c));
    if (bias.data != nullptr) bias.store(0, c, bias.load(0, c) + sums.load(i, c));
  }
};

}  // namespace

void run(const Context& context, const Convolution& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    for_elements(context.stream, call.input.rows, call.input.columns,
                 Convolve<T>{filter_of<T>(call), rows_of<T>(call.output)}, "convolution");
  });
}

void run(const Context& context, const ConvolutionInputGradient& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    for_elements(
        context.stream, call.input.rows, call.input.columns,
        ConvolveBack<T>{filter_of<T>(call), rows_of<T>(call.output_gradient), rows_of<T>(call.input_gradient)},
        "convolution input gradient");
  });
}

void run(const Context& context, const ConvolutionWeightGradient& call) {
  constexpr const char* kWhat = "convolution weight gradient";
  const std::int64_t channels = call.weight.rows, taps = call.weight.columns;
  if (taps > kMostTaps) throw DeviceError("a convolution on CUDA: its width is at most 8");
  const auto bytes = static_cast<std::size_t>((taps + 1) * channels) * sizeof(float);
  auto* const memory = static_cast<float*>(context.scratch->at_least(bytes, context.stream));
  check(cudaMemsetAsync(memory, 0, bytes, context.stream), kWhat);
  const Rows<float> sums{memory, taps + 1, channels, channels};
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    launch(context.stream, kWhat, convolution_weight_sums<T>, {blocks_of_columns<1>(call.input.rows, channels)},
           filter_of<T>(call), rows_of<T>(call.output_gradient), sums);
  });
  by_type(call.weight_gradient.type, [&](auto none) {
    using G = decltype(none);
    for_elements(context.stream, taps + 1, channels,
                 AddTaps<G>{sums, rows_of<G>(call.weight_gradient), rows_of<G>(call.bias_gradient)}, kWhat);
  });
}

}  // namespace rehearse::kernels::cuda
