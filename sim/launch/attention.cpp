#include <cmath>

#include "launch/views.h"

namespace rehearse {

namespace {

using kernels::AttentionBackward;
using kernels::AttentionForward;

// Places of the queries are this rank's or those of the whole sequence; of a ring, keys of step s have come
// from the rank s places before.
kernels::Tensor positions_of(const Launch& launch, std::int64_t places, std::int64_t step) {
  const Shape& shape = launch.bound.shape;
  if (places > shape.seq) return launch.positions(0, places);
  return launch.positions((launch.bound.context_rank + shape.cp - step) % shape.cp * shape.seq, places);
}

kernels::AttentionShape shape_of(const Launch& launch, const Attention& attention) {
  kernels::AttentionShape shape;
  shape.queries = {attention.batch, attention.query, true, {}};
  shape.keys = {attention.batch, attention.keys, true, {}};
  shape.heads = attention.heads;
  shape.kv_heads = attention.kv_heads;
  shape.head_dim = attention.head_dim;
  shape.v_head_dim = attention.v_head_dim > 0 ? attention.v_head_dim : attention.head_dim;
  shape.causal = attention.causal;
  shape.window = attention.window;
  shape.queries.positions = positions_of(launch, attention.query, 0);
  shape.keys.positions = positions_of(launch, attention.keys, 0);
  shape.scale = 1 / std::sqrt(static_cast<float>(attention.head_dim));
  return shape;
}

struct KeysAndValues {
  kernels::Tensor key, value;
};

// Two tensors; or one that holds all keys and then all values, as a collective left them.
KeysAndValues two_or_one(const Launch& launch, const kernels::AttentionShape& shape, std::size_t first,
                         bool together, const std::vector<TensorId>& ids) {
  const std::int64_t rows = shape.keys.rows(), width = shape.kv_heads * shape.head_dim;
  if (!together) return {launch.rows(ids.at(first), rows), launch.rows(ids.at(first + 1), rows)};
  return {launch.part(ids.at(first), 0, rows, width),
          launch.part(ids.at(first), rows * width, rows, shape.kv_heads * shape.v_head_dim)};
}

// Reads {query, key, value}; {query, gathered keys and values}; of a ring {query, key, value, received}.
Calls forward(const Launch& launch, const Attention& attention) {
  AttentionForward call;
  call.shape = shape_of(launch, attention);
  const std::vector<TensorId>& reads = launch.kernel.reads;
  const std::int64_t rows = call.shape.queries.rows(), width = call.shape.heads * call.shape.v_head_dim;
  call.query = launch.rows(reads[0], rows);
  Calls calls;
  for (std::int64_t step = 0; step < attention.steps; ++step) {
    const bool received = step > 0;
    call.shape.keys.positions = positions_of(launch, attention.keys, step);
    const KeysAndValues keys =
        two_or_one(launch, call.shape, received ? 3 : 1, reads.size() == 2 || received, reads);
    call.key = keys.key;
    call.value = keys.value;
    call.output = attention.steps == 1
                      ? launch.write(0, rows)
                      : launch.part(launch.kernel.writes[0], step * rows * width, rows, width);
    call.log_sum_exp =
        launch.part(launch.kernel.writes[1], step * rows * call.shape.heads, rows, call.shape.heads);
    calls.push_back(call);
  }
  return calls;
}

// Reads {output gradient, operands as above, output, log-sum-exp}, of a ring then what travels on; writes one
// gradient an operand, or of a ring all of a step's, step after step.
Calls backward(const Launch& launch, const Attention& attention) {
  AttentionBackward call;
  call.shape = shape_of(launch, attention);
  const std::vector<TensorId>&reads = launch.kernel.reads, &writes = launch.kernel.writes;
  const std::int64_t rows = call.shape.queries.rows();
  const bool ring = attention.steps > 1, together = !ring && writes.size() == 2;
  call.output_gradient = launch.rows(reads[0], rows);
  call.query = launch.rows(reads[1], rows);
  const std::size_t after = together ? 3 : 4;
  // A ring's operands stand before its stops, the results after them.
  const std::size_t results = ring ? reads.size() - 2 : after;
  call.output = launch.rows(reads[results], rows);
  call.log_sum_exp = launch.rows(reads[results + 1], rows);
  Calls calls;
  const std::int64_t q = launch.elements(reads[1]), k = launch.elements(reads[2]),
                     v = together ? 0 : launch.elements(reads[3]);
  for (std::int64_t step = 0; step < attention.steps; ++step) {
    call.shape.keys.positions = positions_of(launch, attention.keys, step);
    const KeysAndValues keys = step == 0 ? two_or_one(launch, call.shape, 2, together, reads)
                                         : two_or_one(launch, call.shape, 4, true, reads);
    call.key = keys.key;
    call.value = keys.value;
    if (ring) {
      const std::int64_t first = step * (q + k + v), key_rows = call.shape.keys.rows();
      call.query_gradient = launch.part(writes[0], first, rows, q / rows);
      call.key_gradient = launch.part(writes[0], first + q, key_rows, k / key_rows);
      call.value_gradient = launch.part(writes[0], first + q + k, key_rows, v / key_rows);
    } else {
      call.query_gradient = launch.write(0, rows);
      const KeysAndValues gradients = two_or_one(launch, call.shape, 1, together, writes);
      call.key_gradient = gradients.key;
      call.value_gradient = gradients.value;
    }
    calls.push_back(call);
  }
  return calls;
}

// {parts, log-sum-exps} of all steps join to {output, log-sum-exp}.
Calls merge(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  const std::int64_t rows = shape.tokens, width = launch.elements(launch.kernel.writes[0]) / rows;
  const TensorId parts = launch.kernel.reads[0], sums = launch.kernel.reads[1];
  Calls calls = {kernels::Cast{launch.part(parts, 0, rows, width), launch.write(0, rows)},
                 kernels::Cast{launch.part(sums, 0, rows, shape.heads), launch.write(1, rows)}};
  for (std::int64_t step = 1; step < shape.cp; ++step) {
    calls.push_back(kernels::AttentionMerge{shape.heads, launch.part(parts, step * rows * width, rows, width),
                                            launch.part(sums, step * rows * shape.heads, rows, shape.heads),
                                            launch.write(0, rows), launch.write(1, rows)});
  }
  return calls;
}

// The gradients of all steps, of query, key and value each.
Calls add_steps(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  const std::int64_t all = launch.elements(launch.kernel.reads[0]) / shape.cp;
  Calls calls;
  std::int64_t first = 0;
  for (const TensorId id : launch.kernel.writes) {
    const std::int64_t width = launch.elements(id) / shape.tokens;
    for (std::int64_t step = 1; step < shape.cp; ++step) {
      kernels::Add sum;
      sum.output = launch.rows(id, shape.tokens);
      sum.inputs = {step == 1 ? launch.part(launch.kernel.reads[0], first, shape.tokens, width) : sum.output,
                    launch.part(launch.kernel.reads[0], step * all + first, shape.tokens, width)};
      calls.push_back(sum);
    }
    first += launch.elements(id);
  }
  return calls;
}

}  // namespace

Calls attention_calls(const Launch& launch, const Attention& attention) {
  return attention.backward ? backward(launch, attention) : forward(launch, attention);
}

Calls sum_of_steps(const Launch& launch) {
  return launch.named("ring_merge") ? merge(launch) : add_steps(launch);
}

}  // namespace rehearse
