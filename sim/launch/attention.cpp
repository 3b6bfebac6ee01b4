#include <array>
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

// Reads {query, key, value}; {query, gathered keys and values}; of a ring {query, own keys and values,
// received ones}. Writes {output, log-sum-exp} of every step.
Calls forward(const Launch& launch, const Attention& attention) {
  AttentionForward call;
  call.shape = shape_of(launch, attention);
  const std::vector<TensorId>&reads = launch.kernel.reads, &writes = launch.kernel.writes;
  const std::int64_t rows = call.shape.queries.rows();
  const bool together = attention.steps > 1 || reads.size() == 2;
  call.query = launch.rows(reads[0], rows);
  Calls calls;
  for (std::size_t step = 0; step < writes.size() / 2; ++step) {
    call.shape.keys.positions = positions_of(launch, attention.keys, static_cast<std::int64_t>(step));
    const KeysAndValues keys = two_or_one(launch, call.shape, step == 0 ? 1 : 2, together, reads);
    call.key = keys.key;
    call.value = keys.value;
    call.output = launch.rows(writes[2 * step], rows);
    call.log_sum_exp = launch.rows(writes[2 * step + 1], rows);
    calls.push_back(call);
  }
  return calls;
}

// Reads {output gradient, operands as above, output, log-sum-exp}, of a ring what travels on before the
// output; writes one gradient an operand, or of a ring {query's, key's and value's} of every step.
Calls backward(const Launch& launch, const Attention& attention) {
  AttentionBackward call;
  call.shape = shape_of(launch, attention);
  const std::vector<TensorId>&reads = launch.kernel.reads, &writes = launch.kernel.writes;
  const std::int64_t rows = call.shape.queries.rows();
  const bool together = attention.steps > 1 || writes.size() == 2;
  call.output_gradient = launch.rows(reads[0], rows);
  call.query = launch.rows(reads[1], rows);
  call.output = launch.rows(reads.at(reads.size() - 2), rows);
  call.log_sum_exp = launch.rows(reads.back(), rows);
  Calls calls;
  for (std::int64_t step = 0; step < attention.steps; ++step) {
    call.shape.keys.positions = positions_of(launch, attention.keys, step);
    const KeysAndValues keys = two_or_one(launch, call.shape, step == 0 ? 2 : 3, together, reads);
    call.key = keys.key;
    call.value = keys.value;
    const auto first = static_cast<std::size_t>(2 * step);
    call.query_gradient = launch.rows(writes[first], rows);
    const KeysAndValues gradients = two_or_one(launch, call.shape, first + 1, together, writes);
    call.key_gradient = gradients.key;
    call.value_gradient = gradients.value;
    calls.push_back(call);
  }
  return calls;
}

// {part, log-sum-exp} of a step begin {output, log-sum-exp}, or join the sum that is read with them.
Calls merge(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  const std::int64_t rows = shape.tokens;
  const std::size_t begun = launch.kernel.reads.size() == 2 ? 0 : 2;
  Calls calls = {kernels::Cast{launch.read(begun, rows), launch.write(0, rows)},
                 kernels::Cast{launch.read(begun + 1, rows), launch.write(1, rows)}};
  if (begun > 0)
    calls.push_back(kernels::AttentionMerge{shape.heads, launch.read(0, rows), launch.read(1, rows),
                                            launch.write(0, rows), launch.write(1, rows)});
  return calls;
}

// Query's, key's and value's gradients: three tensors, or two of which the other holds all keys and then all
// values.
std::array<kernels::Tensor, 3> gradients_in(const Launch& launch, const std::vector<TensorId>& ids,
                                            std::size_t first, std::int64_t key_columns) {
  const std::int64_t rows = launch.bound.shape.tokens;
  const kernels::Tensor query = launch.rows(ids[first], rows);
  if (ids.size() - first == 3)
    return {query, launch.rows(ids[first + 1], rows), launch.rows(ids[first + 2], rows)};
  const std::int64_t columns = launch.elements(ids[first + 1]) / rows;
  return {query, launch.part(ids[first + 1], 0, rows, key_columns),
          launch.part(ids[first + 1], rows * key_columns, rows, columns - key_columns)};
}

// A step's gradients begin the sum, or are added to the one that is read with them.
Calls add_step(const Launch& launch) {
  const std::int64_t keys = launch.bound.shape.attended_kv_heads() * launch.bound.model.head_dim;
  const std::vector<TensorId>& reads = launch.kernel.reads;
  const auto parts = gradients_in(launch, {reads[0], reads[1]}, 0, keys);
  const auto sums = gradients_in(launch, launch.kernel.writes, 0, keys);
  Calls calls;
  if (reads.size() == 2) {
    for (std::size_t i = 0; i < parts.size(); ++i) calls.push_back(kernels::Cast{parts[i], sums[i]});
    return calls;
  }
  const auto begun = gradients_in(launch, reads, 2, keys);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    kernels::Add add;
    add.output = sums[i];
    add.inputs = {begun[i], parts[i]};
    calls.push_back(add);
  }
  return calls;
}

// {key, value} into one tensor, the keys of all rows first; or what is joined already, once more.
Calls pack(const Launch& launch) {
  const std::int64_t rows = launch.bound.shape.tokens;
  const TensorId packed = launch.kernel.writes[0];
  if (launch.kernel.reads.size() == 1)
    return {kernels::Cast{launch.whole(launch.kernel.reads[0]), launch.whole(packed)}};
  const std::int64_t key = launch.elements(launch.kernel.reads[0]),
                     value = launch.elements(launch.kernel.reads[1]);
  return {kernels::Cast{launch.read(0, rows), launch.part(packed, 0, rows, key / rows)},
          kernels::Cast{launch.read(1, rows), launch.part(packed, key, rows, value / rows)}};
}

}  // namespace

Calls attention_calls(const Launch& launch, const Attention& attention) {
  return attention.backward ? backward(launch, attention) : forward(launch, attention);
}

Calls ring_calls(const Launch& launch) {
  if (launch.kernel.name.starts_with("ring_merge")) return merge(launch);
  if (launch.kernel.name.starts_with("ring_gradient_sum")) return add_step(launch);
  return pack(launch);
}

}  // namespace rehearse
