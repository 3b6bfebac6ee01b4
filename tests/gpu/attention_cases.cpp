#include <cmath>

#include "gpu/cases.h"

namespace rehearse::kernels {

namespace {

AttentionShape random_shape(Draw& draw) {
  AttentionShape shape;
  const std::int64_t sequences = draw.size(1, 2), length = draw.size(1, 150);
  const bool position_major = draw.coin();
  shape.causal = draw.coin();
  shape.queries = {sequences, length, position_major, {}};
  shape.keys = {sequences, shape.causal ? length : draw.size(1, 150), position_major, {}};
  shape.kv_heads = draw.size(1, 2);
  shape.heads = shape.kv_heads * draw.size(1, 3);
  shape.head_dim = 8 * draw.size(1, 16);
  shape.v_head_dim = draw.coin() ? shape.head_dim : 8 * draw.size(1, 16);
  shape.window = shape.causal && draw.coin() ? draw.size(1, 90) : 0;
  shape.scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
  return shape;
}

// cuDNN rounds the probabilities before it multiplies by them. In the backward pass it also rounds each query
// head's contribution to a key's gradient, and their sum.
constexpr double kForwardRoundings = 2, kBackwardRoundings = 3;

struct Inputs {
  std::size_t query, key, value;
};

Inputs draw_inputs(Draw& draw, const AttentionShape& shape) {
  return {draw.of(shape.queries.rows(), shape.heads * shape.head_dim),
          draw.of(shape.keys.rows(), shape.kv_heads * shape.head_dim),
          draw.of(shape.keys.rows(), shape.kv_heads * shape.v_head_dim)};
}

Case forward(Draw& draw, double roundings) {
  const AttentionShape shape = random_shape(draw);
  const Inputs in = draw_inputs(draw, shape);
  const std::size_t output = draw.out(shape.queries.rows(), shape.heads * shape.v_head_dim);
  const std::size_t sums = draw.out(Type::fp32, shape.queries.rows(), shape.heads);
  return draw.finish(
      [=](const Tensors& t) {
        return AttentionForward{shape, t[in.query], t[in.key], t[in.value], t[output], t[sums]};
      },
      static_cast<double>(shape.keys.length), roundings);
}

// Positions out of order, as context parallelism gives them.
Case striped(Draw& draw) {
  AttentionShape shape = random_shape(draw);
  shape.causal = true;
  const Inputs in = draw_inputs(draw, shape);
  const std::size_t output = draw.out(shape.queries.rows(), shape.heads * shape.v_head_dim);
  const std::size_t sums = draw.out(Type::fp32, shape.queries.rows(), shape.heads);
  const std::size_t queries = draw.integers(Type::int32, 1, shape.queries.length, 150);
  const std::size_t keys = draw.integers(Type::int32, 1, shape.keys.length, 150);
  return draw.finish(
      [=](const Tensors& t) {
        AttentionForward call{shape, t[in.query], t[in.key], t[in.value], t[output], t[sums]};
        call.shape.queries.positions = t[queries];
        call.shape.keys.positions = t[keys];
        return call;
      },
      static_cast<double>(shape.keys.length));
}

// Output and log-sum-exp are those of the forward, by the CPU.
Case backward(Draw& draw, double roundings) {
  const AttentionShape shape = random_shape(draw);
  const Inputs in = draw_inputs(draw, shape);
  const std::int64_t rows = shape.queries.rows(), width = shape.heads * shape.v_head_dim;
  Draw before(1, Type::fp32);
  before.operands = draw.operands;
  const std::size_t out = before.out(rows, width), sums = before.out(rows, shape.heads);
  const auto made = outcome(*open_cpu(), before.finish([&](const Tensors& t) {
    return AttentionForward{shape, t[in.query], t[in.key], t[in.value], t[out], t[sums]};
  }),
                            true);
  const std::size_t output = draw.given(draw.type, rows, width, made[0]);
  const std::size_t log_sums = draw.given(Type::fp32, rows, shape.heads, made[1]);
  const std::size_t gradient = draw.of(rows, width);
  const std::size_t dq = draw.out(rows, shape.heads * shape.head_dim);
  const std::size_t dk = draw.out(shape.keys.rows(), shape.kv_heads * shape.head_dim);
  const std::size_t dv = draw.out(shape.keys.rows(), shape.kv_heads * shape.v_head_dim);
  return draw.finish(
      [=](const Tensors& t) {
        return AttentionBackward{shape,     t[gradient], t[in.query], t[in.key], t[in.value],
                                 t[output], t[log_sums], t[dq],       t[dk],     t[dv]};
      },
      static_cast<double>(rows * shape.heads), roundings);
}

Case merge(Draw& draw) {
  const std::int64_t rows = draw.size(1, 200), heads = draw.size(1, 6), width = heads * draw.size(1, 70);
  const std::size_t part = draw.of(rows, width), part_sums = draw.of(Type::fp32, rows, heads, -5, 5);
  const std::size_t output = draw.out(rows, width), sums = draw.out(Type::fp32, rows, heads);
  draw.operands[part_sums].values[0] = -INFINITY;
  draw.operands[sums].values.back() = -INFINITY;
  return draw.finish([=](const Tensors& t) {
    return AttentionMerge{heads, t[part], t[part_sums], t[output], t[sums]};
  });
}

Case softmax(Draw& draw) {
  const std::int64_t length = draw.size(1, 60), repeat = draw.size(1, 3), times = draw.size(1, 3);
  const std::int64_t rows = length * repeat * times,
                     columns = draw.coin() ? length : length + draw.size(0, 300);
  const bool causal = draw.coin();
  const std::size_t scores = draw.of(draw.type, rows, columns, -8, 8), out = draw.out(rows, columns);
  return draw.finish(
      [=](const Tensors& t) { return Softmax{t[scores], t[out], 0.7F, causal, length * repeat, repeat}; },
      static_cast<double>(columns));
}

Case softmax_backward(Draw& draw) {
  const std::int64_t rows = draw.size(1, 100), columns = draw.size(1, 600);
  const std::size_t gradient = draw.of(rows, columns), p = draw.of(draw.type, rows, columns, 0, 1);
  const std::size_t out = draw.out(rows, columns);
  return draw.finish(
      [=](const Tensors& t) {
        return SoftmaxBackward{t[gradient], t[p], t[out], 0.7F};
      },
      static_cast<double>(columns));
}

}  // namespace

std::vector<Maker> attention_cases() {
  return {
      {"attention forward", [](Draw& draw) { return forward(draw, kForwardRoundings); }},
      {"attention backward", [](Draw& draw) { return backward(draw, kBackwardRoundings); }},
      {"attention forward, own", [](Draw& draw) { return forward(draw, 1); }, false, Served::without_cudnn},
      {"attention backward, own", [](Draw& draw) { return backward(draw, 1); }, false, Served::without_cudnn},
      {"attention at any positions", striped, false, Served::by_own},
      {"attention merge", merge},
      {"softmax", softmax},
      {"softmax backward", softmax_backward}};
}

}  // namespace rehearse::kernels
