// Attention calls of training: those that cuDNN must take where it is present, and those that it must refuse.
#include <array>
#include <cmath>

#include "gpu/cases.h"

namespace rehearse::kernels {

namespace {

struct Heads {
  std::int64_t width, v_width;
};

// Queries, keys and values, or their gradients: columns of one matrix, or a matrix each.
struct Views {
  std::array<std::size_t, 3> operand;
  std::array<std::int64_t, 3> column, width;
  Tensor at(const Tensors& tensors, std::size_t i) const {
    return tensors[operand.at(i)].slice(column.at(i), width.at(i));
  }
  Tensor query(const Tensors& tensors) const { return at(tensors, 0); }
  Tensor key(const Tensors& tensors) const { return at(tensors, 1); }
  Tensor value(const Tensors& tensors) const { return at(tensors, 2); }
};

// `margin`: columns before them.
Views draw_views(Draw& draw, const AttentionShape& shape, bool written, std::int64_t margin = 0) {
  const std::int64_t q = shape.heads * shape.head_dim, k = shape.kv_heads * shape.head_dim,
                     v = shape.kv_heads * shape.v_head_dim;
  const auto matrix = [&](const Tokens& tokens, std::int64_t columns) {
    return written ? draw.out(tokens.rows(), columns) : draw.of(tokens.rows(), columns);
  };
  if (shape.queries.length == shape.keys.length) {
    const std::size_t all = matrix(shape.queries, margin + q + k + v);
    return {{all, all, all}, {margin, margin + q, margin + q + k}, {q, k, v}};
  }
  const std::size_t queries = matrix(shape.queries, q), keys = matrix(shape.keys, k);
  return {{queries, keys, matrix(shape.keys, v)}, {0, 0, 0}, {q, k, v}};
}

AttentionShape shape_of(Draw& draw, Heads heads, bool causal) {
  AttentionShape shape;
  const std::int64_t sequences = draw.size(1, 3), length = 64 * draw.size(1, 5);
  const bool position_major = draw.coin();
  shape.causal = causal;
  shape.queries = {sequences, length, position_major, {}};
  shape.keys = {sequences, causal || draw.coin() ? length : 64 * draw.size(1, 5), position_major, {}};
  shape.kv_heads = draw.size(1, 2);
  shape.heads = shape.kv_heads * draw.size(1, 4);
  shape.head_dim = heads.width;
  shape.v_head_dim = heads.v_width;
  shape.scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
  return shape;
}

AttentionShape causal_or_full(Draw& draw, Heads heads) {
  return shape_of(draw, heads, draw.coin());
}

Case forward(Draw& draw, const AttentionShape& shape, std::int64_t margin = 0) {
  const Views in = draw_views(draw, shape, false, margin);
  const std::size_t output = draw.out(shape.queries.rows(), shape.heads * shape.v_head_dim);
  const std::size_t sums = draw.out(Type::fp32, shape.queries.rows(), shape.heads);
  return draw.finish(
      [=](const Tensors& t) {
        return AttentionForward{shape, in.query(t), in.key(t), in.value(t), t[output], t[sums]};
      },
      static_cast<double>(shape.keys.length), 2);  // probabilities, output
}

// Output and log-sum-exp are those of the forward, by the CPU.
Case backward(Draw& draw, const AttentionShape& shape) {
  const Views in = draw_views(draw, shape, false);
  const std::int64_t rows = shape.queries.rows(), width = shape.heads * shape.v_head_dim;
  Draw before(1, Type::fp32);
  before.operands = draw.operands;
  const std::size_t out = before.out(rows, width), log_sums = before.out(rows, shape.heads);
  const auto made = outcome(*open_cpu(), before.finish([&](const Tensors& t) {
    return AttentionForward{shape, in.query(t), in.key(t), in.value(t), t[out], t[log_sums]};
  }),
                            true);
  const std::size_t output = draw.given(draw.type, rows, width, made[0]);
  const std::size_t sums = draw.given(Type::fp32, rows, shape.heads, made[1]);
  const std::size_t gradient = draw.of(rows, width);
  const Views to = draw_views(draw, shape, true);
  return draw.finish(
      [=](const Tensors& t) {
        return AttentionBackward{shape,     t[gradient], in.query(t), in.key(t), in.value(t),
                                 t[output], t[sums],     to.query(t), to.key(t), to.value(t)};
      },
      static_cast<double>(rows * shape.heads), 3);  // scores' gradients, a head's part of a key's, their sum
}

// A window, which cuDNN may refuse, must mean the same to it.
AttentionShape windowed(Draw& draw) {
  AttentionShape shape = shape_of(draw, {64, 64}, true);
  shape.window = draw.size(1, shape.keys.length);
  return shape;
}

// cuDNN aligns the last query with the last key or the first with the first; ours counts both from 0 on.
AttentionShape longer_keys(Draw& draw) {
  AttentionShape shape = shape_of(draw, {64, 64}, true);
  shape.keys.length += 64;
  return shape;
}

}  // namespace

std::vector<Maker> fused_attention_cases() {
  std::vector<Maker> all;
  for (const Heads heads : {Heads{64, 64}, Heads{128, 128}, Heads{192, 128}}) {
    const std::string name = "fused attention " + std::to_string(heads.width);
    all.push_back({name + " forward", [=](Draw& draw) { return forward(draw, causal_or_full(draw, heads)); },
                   false, Served::by_cudnn});
    all.push_back({name + " backward",
                   [=](Draw& draw) { return backward(draw, causal_or_full(draw, heads)); }, false,
                   Served::by_cudnn});
  }
  all.push_back({"fused window forward", [](Draw& draw) { return forward(draw, windowed(draw)); }});
  all.push_back({"fused window backward", [](Draw& draw) { return backward(draw, windowed(draw)); }});
  all.push_back({"unfused: longer keys", [](Draw& draw) { return forward(draw, longer_keys(draw)); }, false,
                 Served::by_own});
  all.push_back({"unfused: rows off 16 bytes",
                 [](Draw& draw) {
                   return forward(draw, shape_of(draw, {64, 64}, true), 4);
                 },
                 false, Served::by_own});
  return all;
}

}  // namespace rehearse::kernels
