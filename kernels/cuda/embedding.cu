// Rows of tables by token and by position.
#include <type_traits>

#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/sums.cuh"

namespace rehearse::kernels::cuda {

namespace {

// The table's row of a token, or -1 where this part of the vocabulary does not have it.
struct Lookup {
  const std::int64_t* tokens;
  std::int64_t first, rows;
  __device__ std::int64_t operator()(std::int64_t r) const {
    const std::int64_t index = tokens[r] - first;
    return index < rows ? index : -1;
  }
};

template <typename T>
struct Embed {
  Lookup row_of;
  Rows<T> table, out;
  template <int N>
  bool in_packs() const {
    return cuda::in_packs<N>(table) && cuda::in_packs<N>(out);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t c) const {
    const std::int64_t index = row_of(r);
    Lanes<N> row = {};
    if (index >= 0) row = load<N>(table.row(index) + c);
    store(out.row(r) + c, row);
  }
};

template <typename T>
struct EmbedBack {
  Lookup row_of;
  Rows<T> dy;
  Rows<float> dtable;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    const std::int64_t index = row_of(r);
    if (index >= 0) atomicAdd(dtable.row(index) + c, dy.load(r, c));
  }
};

// For each row of the table: the first row of the input with that token.
struct FindFirst {
  Lookup row_of;
  std::int32_t* first;
  __device__ void operator()(std::int64_t, std::int64_t r) const {
    const std::int64_t index = row_of(r);
    if (index >= 0) atomicMin(first + index, static_cast<std::int32_t>(r));
  }
};

template <typename T>
struct SumAtFirst {
  Lookup row_of;
  const std::int32_t* first;
  Rows<T> dy;
  Rows<float> sums;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    const std::int64_t index = row_of(r);
    if (index >= 0) atomicAdd(sums.row(first[index]) + c, dy.load(r, c));
  }
};

template <typename G>
struct AddFirst {
  Lookup row_of;
  const std::int32_t* first;
  Rows<float> sums;
  Rows<G> dtable;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    const std::int64_t index = row_of(r);
    if (index >= 0 && first[index] == r) dtable.store(index, c, dtable.load(index, c) + sums.load(r, c));
  }
};

template <typename T>
struct AddPositions {
  DeviceTokens tokens;
  Rows<T> in, table, out;
  template <int N>
  bool in_packs() const {
    return cuda::in_packs<N>(in) && cuda::in_packs<N>(table) && cuda::in_packs<N>(out);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t c) const {
    const Lanes<N> x = load<N>(in.row(r) + c), more = load<N>(table.row(tokens.position(r)) + c);
    store(out.row(r) + c, Lanes<N>::of([&](int i) { return x.x[i] + more.x[i]; }));
  }
};

template <typename T>
struct PositionsBack {
  DeviceTokens tokens;
  Rows<T> dy;
  Rows<float> dtable;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    atomicAdd(dtable.row(tokens.position(r)) + c, dy.load(r, c));
  }
};

// The table's gradient in 16 bits. fp32 sums exist only for rows that occur, as the table has many more.
template <typename T, typename G>
void embed_back(const Context& context, const EmbeddingBackward& call, const Lookup& lookup) {
  constexpr int kLate = 0x7f;  // in all bytes: greater than every row
  const Tensor& dy = call.output_gradient;
  const auto sum_bytes = static_cast<std::size_t>(dy.elements()) * sizeof(float),
             first_bytes = static_cast<std::size_t>(lookup.rows) * sizeof(std::int32_t);
  auto* memory = static_cast<std::byte*>(context.scratch->at_least(sum_bytes + first_bytes, context.stream));
  const Rows<float> sums{reinterpret_cast<float*>(memory), dy.rows, dy.columns, dy.columns};
  auto* first = reinterpret_cast<std::int32_t*>(memory + sum_bytes);
  check(cudaMemsetAsync(memory, 0, sum_bytes, context.stream), "embedding backward");
  check(cudaMemsetAsync(first, kLate, first_bytes, context.stream), "embedding backward");
  for_elements(context.stream, 1, dy.rows, FindFirst{lookup, first}, "embedding backward");
  for_elements(context.stream, dy.rows, dy.columns, SumAtFirst<T>{lookup, first, rows_of<T>(dy), sums},
               "embedding backward");
  for_elements(context.stream, dy.rows, dy.columns, AddFirst<G>{lookup, first, sums, rows_of<G>(call.table_gradient)},
               "embedding backward");
}

}  // namespace

void run(const Context& context, const Embedding& call) {
  by_type(call.table.type, [&](auto zero) {
    using T = decltype(zero);
    const Lookup lookup{data<std::int64_t>(call.tokens), call.first, call.table.rows};
    for_packs<kLanes<T>>(context.stream, call.output.rows, call.output.columns,
                         Embed<T>{lookup, rows_of<T>(call.table), rows_of<T>(call.output)}, "embedding");
  });
}

void run(const Context& context, const EmbeddingBackward& call) {
  by_types(call.output_gradient.type, call.table_gradient.type, [&](auto zero, auto none) {
    using T = decltype(zero);
    using G = decltype(none);
    const Lookup lookup{data<std::int64_t>(call.tokens), call.first, call.table_gradient.rows};
    if constexpr (std::is_same_v<G, float>) {
      for_elements(context.stream, call.output_gradient.rows, call.output_gradient.columns,
                   EmbedBack<T>{lookup, rows_of<T>(call.output_gradient), rows_of<float>(call.table_gradient)},
                   "embedding backward");
    } else {
      embed_back<T, G>(context, call, lookup);
    }
  });
}

void run(const Context& context, const Positions& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    for_packs<kLanes<T>>(
        context.stream, call.input.rows, call.input.columns,
        AddPositions<T>{on_device(call.tokens), rows_of<T>(call.input), rows_of<T>(call.table), rows_of<T>(call.output)},
        "positions");
  });
}

void run(const Context& context, const PositionsBackward& call) {
  by_type(call.output_gradient.type, [&](auto zero) {
    using T = decltype(zero);
    const Rows<T> dy = rows_of<T>(call.output_gradient);
    sum_in_fp32(
        context, std::array{call.table_gradient},
        [&](const auto& sums, void* /*memory*/) {
          for_elements(context.stream, dy.rows, dy.columns, PositionsBack<T>{on_device(call.tokens), dy, sums[0]},
                       "positions backward");
        },
        "positions backward");
  });
}

}  // namespace rehearse::kernels::cuda
