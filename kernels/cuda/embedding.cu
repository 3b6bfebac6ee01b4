// Rows of tables by token and by position.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

namespace {

// The table's row of a token, or none of this part of the vocabulary.
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
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    const std::int64_t index = row_of(r);
    out.store(r, c, index < 0 ? 0.0F : table.load(index, c));
  }
};

template <typename T, typename G>
struct EmbedBack {
  Lookup row_of;
  Rows<T> dy;
  Rows<G> dtable;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    const std::int64_t index = row_of(r);
    if (index >= 0) add_to(dtable.row(index) + c, dy.load(r, c));
  }
};

template <typename T>
struct AddPositions {
  DeviceTokens tokens;
  Rows<T> in, table, out;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    out.store(r, c, in.load(r, c) + table.load(tokens.position(r), c));
  }
};

template <typename T, typename G>
struct PositionsBack {
  DeviceTokens tokens;
  Rows<T> dy;
  Rows<G> dtable;
  __device__ void operator()(std::int64_t r, std::int64_t c) const {
    add_to(dtable.row(tokens.position(r)) + c, dy.load(r, c));
  }
};

}  // namespace

void run(const Context& context, const Embedding& call) {
  by_type(call.table.type, [&](auto zero) {
    using T = decltype(zero);
    const Lookup lookup{data<std::int64_t>(call.tokens), call.first, call.table.rows};
    for_elements(context.stream, call.output.rows, call.output.columns,
                 Embed<T>{lookup, rows_of<T>(call.table), rows_of<T>(call.output)}, "embedding");
  });
}

void run(const Context& context, const EmbeddingBackward& call) {
  by_types(call.output_gradient.type, call.table_gradient.type, [&](auto zero, auto none) {
    using T = decltype(zero);
    using G = decltype(none);
    const Lookup lookup{data<std::int64_t>(call.tokens), call.first, call.table_gradient.rows};
    for_elements(context.stream, call.output_gradient.rows, call.output_gradient.columns,
                 EmbedBack<T, G>{lookup, rows_of<T>(call.output_gradient), rows_of<G>(call.table_gradient)},
                 "embedding backward");
  });
}

void run(const Context& context, const Positions& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    for_elements(
        context.stream, call.input.rows, call.input.columns,
        AddPositions<T>{on_device(call.tokens), rows_of<T>(call.input), rows_of<T>(call.table), rows_of<T>(call.output)},
        "positions");
  });
}

void run(const Context& context, const PositionsBackward& call) {
  by_types(call.output_gradient.type, call.table_gradient.type, [&](auto zero, auto none) {
    using T = decltype(zero);
    using G = decltype(none);
    for_elements(
        context.stream, call.output_gradient.rows, call.output_gradient.columns,
        PositionsBack<T, G>{on_device(call.tokens), rows_of<T>(call.output_gradient), rows_of<G>(call.table_gradient)},
        "positions backward");
  });
}

}  // namespace rehearse::kernels::cuda
