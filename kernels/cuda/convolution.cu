// The causal convolution of a state space. A thread handles neighbouring channels along some places of a
// sequence, and keeps the inputs of its taps in registers. It reads each of its tokens once, and the few
// tokens before the first one again.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/scratch.h"
#include "kernels/cuda/silu.cuh"

namespace rehearse::kernels::cuda {

namespace {

constexpr int kFewTaps = 4, kMaxTaps = 8;
// Places of a thread. With four taps it reads three more. For sums, each thread calls atomicAdd() once for
// all its places.
constexpr std::int64_t kPlaces = 16, kPlacesOfInputs = 32, kPlacesOfSums = 64;
// Wider packs and more prefetched places take so many registers that too few threads remain. Measured on an
// H200, 4096 x 10240 in bf16: packs of 16 bytes and two places ahead took 101 us forward and 255 us for sums;
// half of that and one place ahead took 84 us and 152 us.
template <typename T>
constexpr int kHalf = kLanes<T> / 2;

template <typename T>
struct Filter {
  DeviceTokens tokens;
  Rows<T> in, weight;
  const T* bias;
  __device__ T* token(const Rows<T>& of, std::int64_t sequence, std::int64_t place) const {
    return of.row(tokens.row(sequence, place));
  }
  template <int N>
  bool in_packs() const {
    return cuda::in_packs<N>(in) && cuda::in_packs<N>(bias);
  }
};
template <typename T, typename Call>
Filter<T> filter_of(const Call& call) {
  return {on_device(call.tokens), rows_of<T>(call.input), rows_of<T>(call.weight), data<T>(call.bias)};
}

// Places from `first` to before `last` of one sequence.
struct Strip {
  std::int64_t sequence, first, last;
  __device__ Strip(const DeviceTokens& tokens, std::int64_t number, std::int64_t places) {
    const std::int64_t of_each = (tokens.length + places - 1) / places;
    sequence = number / of_each;
    first = number % of_each * places;
    last = min(first + places, tokens.length);
  }
  static std::int64_t count(const Tokens& tokens, std::int64_t places) {
    return tokens.sequences * ((tokens.length + places - 1) / places);
  }
};

// N channels from `c` on, at consecutive places of a sequence. Each load is issued one place before it is
// needed: the compiler cannot move it, as it may alias the thread's own stores.
template <int N, typename T>
struct Ahead {
  Rows<T> of;
  const DeviceTokens& tokens;
  std::int64_t sequence, c, last;
  Pack<T, N> next = {};

  __device__ Ahead(const Rows<T>& rows, const DeviceTokens& its, const Strip& strip, std::int64_t channel)
      : of(rows), tokens(its), sequence(strip.sequence), c(channel), last(strip.last) {
    ask(strip.first);
  }
  __device__ void ask(std::int64_t place) {
    if (place < last) next = load_pack<N>(of.row(tokens.row(sequence, place)) + c);
  }
  __device__ Lanes<N> take(std::int64_t place) {
    const Lanes<N> now = lanes_of(next);
    ask(place + 1);
    return now;
  }
};

// State of a thread for N channels from `c` on. It holds M taps and the M latest inputs, which are 0 before
// the sequence. A narrower filter has taps of 0 first.
template <int N, int M, typename T>
struct Along {
  const Filter<T>& filter;
  std::int64_t sequence, c;
  Lanes<N> weight[M], bias = {}, x[M] = {};

  __device__ Along(const Filter<T>& its, const Strip& strip, std::int64_t channel)
      : filter(its), sequence(strip.sequence), c(channel) {
    for (int k = 0; k < M; ++k) {
      const int tap = k - lacking();
      weight[k] = Lanes<N>::of([&](int i) { return tap < 0 ? 0.0F : filter.weight.load(c + i, tap); });
    }
    if (filter.bias != nullptr) bias = load<N>(filter.bias + c);
    for (int k = 1; k < M; ++k)
      if (const std::int64_t place = strip.first - M + k; place >= 0) x[k] = token(filter.in, place);
  }
  __device__ int lacking() const { return M - static_cast<int>(filter.weight.columns); }
  __device__ Lanes<N> token(const Rows<T>& of, std::int64_t place) const {
    return load<N>(filter.token(of, sequence, place) + c);
  }
  __device__ void move_to(const Lanes<N>& input) {
    for (int k = 0; k + 1 < M; ++k) x[k] = x[k + 1];
    x[M - 1] = input;
  }
  __device__ Lanes<N> before_silu() const {
    Lanes<N> sum = bias;
    for (int k = 0; k < M; ++k)
      for (int i = 0; i < N; ++i) sum.x[i] += weight[k].x[i] * x[k].x[i];
    return sum;
  }
  // The gradient of SiLU's input at the last place of x, from the gradient of its output.
  __device__ Lanes<N> gradient(const Lanes<N>& dy) const {
    const Lanes<N> sum = before_silu();
    return Lanes<N>::of([&](int i) { return dy.x[i] * silu_slope(sum.x[i]); });
  }
};

template <int M, typename T>
struct Convolve {
  Filter<T> filter;
  Rows<T> out;
  template <int N>
  bool in_packs() const {
    return filter.template in_packs<N>() && cuda::in_packs<N>(out);
  }
  template <int N>
  __device__ void at(std::int64_t number, std::int64_t c) const {
    const Strip strip(filter.tokens, number, kPlaces);
    Along<N, M, T> along(filter, strip, c);
    Ahead<N, T> inputs(filter.in, filter.tokens, strip, c);
    for (std::int64_t place = strip.first; place < strip.last; ++place) {
      along.move_to(inputs.take(place));
      const Lanes<N> sum = along.before_silu();
      store(filter.token(out, strip.sequence, place) + c, Lanes<N>::of([&](int i) { return silu(sum.x[i]); }));
    }
  }
};

// A token's input gets its gradient from the M places that see it.
template <int M, typename T>
struct ConvolveBack {
  Filter<T> filter;
  Rows<T> dout, din;
  template <int N>
  bool in_packs() const {
    return filter.template in_packs<N>() && cuda::in_packs<N>(dout) && cuda::in_packs<N>(din);
  }
  template <int N>
  __device__ void at(std::int64_t number, std::int64_t c) const {
    const Strip strip(filter.tokens, number, kPlacesOfInputs);
    Along<N, M, T> along(filter, strip, c);
    Lanes<N> seen[M] = {};  // gradients of SiLU's input, up to `place`
    for (std::int64_t place = strip.first; place < strip.last + M - 1; ++place) {
      for (int k = 0; k + 1 < M; ++k) seen[k] = seen[k + 1];
      seen[M - 1] = {};
      if (place < filter.tokens.length) {
        along.move_to(along.token(filter.in, place));
        seen[M - 1] = along.gradient(along.token(dout, place));
      }
      if (place < strip.first + M - 1) continue;
      Lanes<N> sum = {};
      for (int k = 0; k < M; ++k)
        for (int i = 0; i < N; ++i) sum.x[i] += along.weight[M - 1 - k].x[i] * seen[k].x[i];
      store(filter.token(din, strip.sequence, place - (M - 1)) + c, sum);
    }
  }
};

// sums, by channel: one for each tap, then the bias's.
template <int M, typename T>
struct ConvolveSums {
  Filter<T> filter;
  Rows<T> dout;
  Rows<float> sums;
  template <int N>
  bool in_packs() const {
    return filter.template in_packs<N>() && cuda::in_packs<N>(dout);
  }
  template <int N>
  __device__ void at(std::int64_t number, std::int64_t c) const {
    const Strip strip(filter.tokens, number, kPlacesOfSums);
    Along<N, M, T> along(filter, strip, c);
    Ahead<N, T> inputs(filter.in, filter.tokens, strip, c), gradients(dout, filter.tokens, strip, c);
    Lanes<N> of_taps[M] = {}, of_bias = {};
    for (std::int64_t place = strip.first; place < strip.last; ++place) {
      along.move_to(inputs.take(place));
      const Lanes<N> g = along.gradient(gradients.take(place));
      for (int i = 0; i < N; ++i) {
        of_bias.x[i] += g.x[i];
        for (int k = 0; k < M; ++k) of_taps[k].x[i] += g.x[i] * along.x[k].x[i];
      }
    }
    for (int i = 0; i < N; ++i) {
      for (int k = 0; k < M; ++k)
        if (k >= along.lacking()) atomicAdd(sums.row(k - along.lacking()) + c + i, of_taps[k].x[i]);
      atomicAdd(sums.row(filter.weight.columns) + c + i, of_bias.x[i]);
    }
  }
};

template <typename G>
struct AddTaps {
  Rows<float> sums;
  Rows<G> weight, bias;
  __device__ void operator()(std::int64_t i, std::int64_t c) const {
    if (i < weight.columns) return weight.store(c, i, weight.load(c, i) + sums.load(i, c));
    if (bias.data != nullptr) bias.store(0, c, bias.load(0, c) + sums.load(i, c));
  }
};

// Calls body(M) with at least that many taps; M is a type.
template <int M>
struct Taps {
  static constexpr int kMax = M;
};
template <typename Body>
void by_taps(std::int64_t taps, const Body& body) {
  if (taps <= kFewTaps) return body(Taps<kFewTaps>{});
  if (taps <= kMaxTaps) return body(Taps<kMaxTaps>{});
  throw DeviceError("a convolution on CUDA: its width is at most 8");
}

}  // namespace

void run(const Context& context, const Convolution& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    by_taps(call.weight.columns, [&](auto taps) {
      constexpr int kTaps = decltype(taps)::kMax;
      for_packs<kHalf<T>>(context.stream, Strip::count(call.tokens, kPlaces), call.input.columns,
                           Convolve<kTaps, T>{filter_of<T>(call), rows_of<T>(call.output)}, "convolution");
    });
  });
}

void run(const Context& context, const ConvolutionInputGradient& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    by_taps(call.weight.columns, [&](auto taps) {
      constexpr int kTaps = decltype(taps)::kMax;
      for_packs<kLanes<T>>(context.stream, Strip::count(call.tokens, kPlacesOfInputs), call.input.columns,
                           ConvolveBack<kTaps, T>{filter_of<T>(call), rows_of<T>(call.output_gradient),
                                                  rows_of<T>(call.input_gradient)},
                           "convolution input gradient");
    });
  });
}

void run(const Context& context, const ConvolutionWeightGradient& call) {
  constexpr const char* kWhat = "convolution weight gradient";
  const std::int64_t channels = call.weight.rows, taps = call.weight.columns;
  const auto bytes = static_cast<std::size_t>((taps + 1) * channels) * sizeof(float);
  auto* const memory = static_cast<float*>(context.scratch->at_least(bytes, context.stream));
  check(cudaMemsetAsync(memory, 0, bytes, context.stream), kWhat);
  const Rows<float> sums{memory, taps + 1, channels, channels};
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    by_taps(taps, [&](auto most) {
      constexpr int kTaps = decltype(most)::kMax;
      for_packs<kHalf<T>>(context.stream, Strip::count(call.tokens, kPlacesOfSums), channels,
                           ConvolveSums<kTaps, T>{filter_of<T>(call), rows_of<T>(call.output_gradient), sums}, kWhat);
    });
  });
  by_type(call.weight_gradient.type, [&](auto none) {
    using G = decltype(none);
    for_elements(context.stream, taps + 1, channels,
                 AddTaps<G>{sums, rows_of<G>(call.weight_gradient), rows_of<G>(call.bias_gradient)}, kWhat);
  });
}

}  // namespace rehearse::kernels::cuda
