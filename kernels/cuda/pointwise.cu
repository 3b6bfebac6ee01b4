// Kernels that pass over memory once.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/sums.cuh"
#include "kernels/philox.h"

namespace rehearse::kernels::cuda {

namespace {

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

template <int N, typename T>
__global__ void column_sums(Rows<T> in, float* totals) {
  add_up_columns<N>(in.rows, in.columns, {totals}, [&](std::int64_t r, std::int64_t c, float (&sums)[1][N]) {
    const Lanes<N> more = load<N>(in.row(r) + c);
    for (int i = 0; i < N; ++i) sums[0][i] += more.x[i];
  });
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
  by_type(call.output_gradient.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kMax = kLanes<T>;
    const Rows<T> in = rows_of<T>(call.output_gradient);
    const auto add_up = [&](const auto& sums, void* /*memory*/) {
      if (in_packs<kMax>(in))
        return launch(context.stream, kWhat, column_sums<kMax, T>, {blocks_of_columns<kMax>(in.rows, in.columns)}, in,
                      sums[0].data);
      launch(context.stream, kWhat, column_sums<1, T>, {blocks_of_columns<1>(in.rows, in.columns)}, in, sums[0].data);
    };
    sum_in_fp32(context, std::array{call.bias_gradient}, add_up, kWhat);
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
