// Rotary positions, of whole heads or of the rotated parts of latent attention.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/scratch.h"

namespace rehearse::kernels::cuda {

namespace {

// Sines and cosines by place and pair; one row a place.
struct AngleTable {
  float *sines, *cosines;
  std::int64_t half;
};

// Angles of every place and pair, once for all heads. Angles are computed in double, as a long sequence has
// many turns. A thread takes kPlaces of a pair, and computes the power, most of the work, once.
constexpr std::int64_t kPlaces = 8;
struct Angles {
  DeviceTokens tokens;
  AngleTable table;
  float base;
  bool back;
  __device__ void operator()(std::int64_t stretch, std::int64_t pair) const {
    constexpr double kTurn = 6.283185307179586;
    const double exponent = -static_cast<double>(pair) / static_cast<double>(table.half);
    const double frequency = pow(static_cast<double>(base), exponent) / kTurn * (back ? -1 : 1);
    const std::int64_t last = min((stretch + 1) * kPlaces, tokens.length);
    for (std::int64_t place = stretch * kPlaces; place < last; ++place) {
      const double turns = static_cast<double>(tokens.position_of_place(place)) * frequency;
      const std::int64_t at = place * table.half + pair;
      sincospif(2 * static_cast<float>(turns - rint(turns)), table.sines + at, table.cosines + at);
    }
  }
};

// Rotates the N pairs from `pair` on, for a row's token.
struct Turning {
  DeviceTokens tokens;
  AngleTable table;
  template <int N>
  __device__ void operator()(std::int64_t r, std::int64_t pair, Lanes<N>& a, Lanes<N>& b) const {
    const std::int64_t at = tokens.place(r) * table.half + pair;
    const Lanes<N> x = a, y = b, sine = load<N>(table.sines + at), cosine = load<N>(table.cosines + at);
    a = Lanes<N>::of([&](int i) { return x.x[i] * cosine.x[i] - y.x[i] * sine.x[i]; });
    b = Lanes<N>::of([&](int i) { return y.x[i] * cosine.x[i] + x.x[i] * sine.x[i]; });
  }
};

Turning make_angles(const Context& context, const Tokens& of, std::int64_t half, float base, bool back) {
  constexpr std::int64_t kAligned = 64;  // floats; a multiple of every pack size
  const std::int64_t aligned = (of.length * half + kAligned - 1) / kAligned * kAligned;
  auto* const sines = static_cast<float*>(
      context.scratch->at_least(static_cast<std::size_t>(2 * aligned) * sizeof(float), context.stream));
  const Turning turning{on_device(of), {sines, sines + aligned, half}};
  for_elements(context.stream, (of.length + kPlaces - 1) / kPlaces, half,
               Angles{turning.tokens, turning.table, base, back}, "rotary");
  return turning;
}

// N pairs of one head.
template <typename T>
struct Turn {
  Rows<T> in, out;
  Turning turning;
  template <int N>
  bool in_packs() const {
    return turning.table.half % N == 0 && cuda::in_packs<N>(in) && cuda::in_packs<N>(out);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t pair) const {
    const std::int64_t half = turning.table.half;
    const auto [head, i] = divide(pair, half);
    const std::int64_t first = head * 2 * half + i;
    Lanes<N> a = load<N>(in.row(r) + first), b = load<N>(in.row(r) + first + half);
    turning(r, i, a, b);
    store(out.row(r) + first, a);
    store(out.row(r) + first + half, b);
  }
};

// Columns of one head. A thread takes N that belong together: own ones, values, or pairs.
struct LatentColumns {
  std::int64_t own, half, value;
  __device__ std::int64_t width() const { return own + 2 * half; }
  // Column `c` of head `head`. Its query and key begin at `first` of a row; its own key and value begin at
  // `pair`.
  struct Place {
    std::int64_t head, c, first, pair;
  };
  __device__ Place place(std::int64_t column) const {
    const auto [head, c] = divide(column, own + half + value);
    return {head, c, head * width(), head * (own + value)};
  }
  std::int64_t columns(std::int64_t heads) const { return heads * (own + half + value); }
  template <int N>
  bool in_packs() const {
    return own % N == 0 && half % N == 0 && value % N == 0;
  }
};

template <typename T>
struct LatentForward {
  Rows<T> query, shared, pairs, query_output, key_output, value_output;
  Turning turning;
  LatentColumns of;
  template <int N>
  bool in_packs() const {
    return of.in_packs<N>() && cuda::in_packs<N>(query) && cuda::in_packs<N>(shared) && cuda::in_packs<N>(pairs) &&
           cuda::in_packs<N>(query_output) && cuda::in_packs<N>(key_output) && cuda::in_packs<N>(value_output);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t column) const {
    const auto [head, c, first, pair] = of.place(column);
    if (c < of.own) {
      store(query_output.row(r) + first + c, load<N>(query.row(r) + first + c));
      store(key_output.row(r) + first + c, load<N>(pairs.row(r) + pair + c));
    } else if (c < of.own + of.half) {
      turn<N>(r, c - of.own, query.row(r) + first + of.own, query_output.row(r) + first + of.own);
      turn<N>(r, c - of.own, shared.row(r), key_output.row(r) + first + of.own);
    } else {
      const std::int64_t v = c - of.own - of.half;
      store(value_output.row(r) + head * of.value + v, load<N>(pairs.row(r) + pair + of.own + v));
    }
  }
  template <int N>
  __device__ void turn(std::int64_t r, std::int64_t i, const T* from, T* to) const {
    Lanes<N> a = load<N>(from + i), b = load<N>(from + of.half + i);
    turning(r, i, a, b);
    store(to + i, a);
    store(to + of.half + i, b);
  }
};

// All gradients except that of the shared key.
template <typename T>
struct LatentBackward {
  Rows<T> of_query, of_key, of_value, query, pairs;
  Turning turning;
  LatentColumns of;
  template <int N>
  bool in_packs() const {
    return of.in_packs<N>() && cuda::in_packs<N>(of_query) && cuda::in_packs<N>(of_key) &&
           cuda::in_packs<N>(of_value) && cuda::in_packs<N>(query) && cuda::in_packs<N>(pairs);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t column) const {
    const auto [head, c, first, pair] = of.place(column);
    if (c < of.own) {
      store(query.row(r) + first + c, load<N>(of_query.row(r) + first + c));
      store(pairs.row(r) + pair + c, load<N>(of_key.row(r) + first + c));
    } else if (c < of.own + of.half) {
      const std::int64_t i = first + c;
      Lanes<N> a = load<N>(of_query.row(r) + i), b = load<N>(of_query.row(r) + i + of.half);
      turning(r, c - of.own, a, b);
      store(query.row(r) + i, a);
      store(query.row(r) + i + of.half, b);
    } else {
      const std::int64_t v = c - of.own - of.half;
      store(pairs.row(r) + pair + of.own + v, load<N>(of_value.row(r) + head * of.value + v));
    }
  }
};

// The gradient of the shared key, summed over heads: N pairs of a row. Pairs are numbered over all rows,
// since those of one row are too few for a warp.
template <typename T>
struct SharedKeyBackward {
  Rows<T> of_key, shared;
  Turning turning;
  LatentColumns of;
  std::int64_t heads;
  template <int N>
  bool in_packs() const {
    return of.in_packs<N>() && cuda::in_packs<N>(of_key) && cuda::in_packs<N>(shared);
  }
  template <int N>
  __device__ void at(std::int64_t /*row*/, std::int64_t number) const {
    const std::int64_t r = number / of.half, pair = number % of.half;
    Lanes<N> a = {}, b = {};
    for (std::int64_t head = 0; head < heads; ++head) {
      const T* from = of_key.row(r) + head * of.width() + of.own + pair;
      const Lanes<N> x = load<N>(from), y = load<N>(from + of.half);
      for (int i = 0; i < N; ++i) {
        a.x[i] += x.x[i];
        b.x[i] += y.x[i];
      }
    }
    turning(r, pair, a, b);
    store(shared.row(r) + pair, a);
    store(shared.row(r) + pair + of.half, b);
  }
};

LatentColumns columns_of(const LatentHeads& heads) {
  return {heads.own, heads.turned / 2, heads.value};
}

}  // namespace

void run(const Context& context, const Rotary& call) {
  const std::int64_t half = call.query.columns / call.heads / 2;
  const Turning turning = make_angles(context, call.tokens, half, call.base, call.back);
  by_type(call.query.type, [&](auto zero) {
    using T = decltype(zero);
    const auto turn = [&](const Tensor& in, const Tensor& out) {
      for_packs<kLanes<T>>(context.stream, in.rows, in.columns / 2, Turn<T>{rows_of<T>(in), rows_of<T>(out), turning},
                           "rotary");
    };
    turn(call.query, call.query_output);
    turn(call.key, call.key_output);
  });
}

void run(const Context& context, const LatentRotary& call) {
  const LatentColumns of = columns_of(call.heads);
  const Turning turning = make_angles(context, call.heads.tokens, of.half, call.heads.base, false);
  by_type(call.query.type, [&](auto zero) {
    using T = decltype(zero);
    for_packs<kLanes<T>>(context.stream, call.query.rows, of.columns(call.heads.heads),
                         LatentForward<T>{rows_of<T>(call.query), rows_of<T>(call.shared_key),
                                          rows_of<T>(call.keys_and_values), rows_of<T>(call.query_output),
                                          rows_of<T>(call.key_output), rows_of<T>(call.value_output), turning, of},
                         "latent rotary");
  });
}

void run(const Context& context, const LatentRotaryBackward& call) {
  const LatentColumns of = columns_of(call.heads);
  const Turning turning = make_angles(context, call.heads.tokens, of.half, call.heads.base, true);
  by_type(call.query_gradient.type, [&](auto zero) {
    using T = decltype(zero);
    const Rows<T> of_key = rows_of<T>(call.key_output_gradient);
    const std::int64_t rows = call.query_gradient.rows, heads = call.heads.heads;
    for_packs<kLanes<T>>(context.stream, rows, of.columns(heads),
                         LatentBackward<T>{rows_of<T>(call.query_output_gradient), of_key,
                                           rows_of<T>(call.value_output_gradient), rows_of<T>(call.query_gradient),
                                           rows_of<T>(call.keys_and_values_gradient), turning, of},
                         "latent rotary backward");
    for_packs<kLanes<T>>(context.stream, 1, rows * of.half,
                         SharedKeyBackward<T>{of_key, rows_of<T>(call.shared_key_gradient), turning, of, heads},
                         "latent rotary backward");
  });
}

}  // namespace rehearse::kernels::cuda
