#include <cmath>

#include "launch/views.h"

namespace rehearse {

namespace {

using kernels::AttentionBackward;
using kernels::AttentionForward;

// Places of the queries: this rank's, or those of the whole sequence. In a ring, the keys of step s come from
// the rank s places before.
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

// All keys, then all values, as a collective stored them.
KeysAndValues in_one(const Launch& launch, const kernels::AttentionShape& shape, TensorId both) {
  const std::int64_t rows = shape.keys.rows(), width = shape.kv_heads * shape.head_dim;
  return {launch.part(both, 0, rows, width),
          launch.part(both, rows * width, rows, shape.kv_heads * shape.v_head_dim)};
}

// Keys and values of step `step`. The first step of a ring reads the rank's own, later steps read the
// arriving ones.
KeysAndValues keys_of_step(const Launch& launch, const kernels::AttentionShape& shape, std::size_t step) {
  const KernelTensors& reads = launch.kernel.reads;
  if (step > 0) return in_one(launch, shape, reads.in(Slot::arriving));
  if (reads.has(Slot::keys_and_values)) return in_one(launch, shape, reads.in(Slot::keys_and_values));
  return {launch.read_in(Slot::keys, shape.keys.rows()), launch.read_in(Slot::values, shape.keys.rows())};
}

// The gradients that this step writes.
KeysAndValues gradients_of_step(const Launch& launch, const kernels::AttentionShape& shape,
                                std::size_t step) {
  const std::vector<TensorId> both = launch.kernel.writes.all_in(Slot::keys_and_values);
  if (!both.empty()) return in_one(launch, shape, both.at(step));
  return {launch.write_in(Slot::keys, shape.keys.rows()), launch.write_in(Slot::values, shape.keys.rows())};
}

// Reads query, keys and values; in a ring also the arriving ones. Writes output and log-sum-exp of every
// step.
Calls forward(const Launch& launch, const Attention& attention) {
  AttentionForward call;
  call.shape = shape_of(launch, attention);
  const std::int64_t rows = call.shape.queries.rows();
  call.query = launch.read(0, rows);
  const std::vector<TensorId> outputs = launch.kernel.writes.all_in(Slot::operand),
                              log_sums = launch.kernel.writes.all_in(Slot::log_sum_exp);
  Calls calls;
  for (std::size_t step = 0; step < outputs.size(); ++step) {
    call.shape.keys.positions = positions_of(launch, attention.keys, static_cast<std::int64_t>(step));
    const KeysAndValues keys = keys_of_step(launch, call.shape, step);
    call.key = keys.key;
    call.value = keys.value;
    call.output = launch.rows(outputs[step], rows);
    call.log_sum_exp = launch.rows(log_sums.at(step), rows);
    calls.push_back(call);
  }
  return calls;
}

// Reads the inputs and results of the forward kernel, and the output's gradient. Writes the gradients of
// query, keys and values of every step.
Calls backward(const Launch& launch, const Attention& attention) {
  AttentionBackward call;
  call.shape = shape_of(launch, attention);
  const std::int64_t rows = call.shape.queries.rows();
  call.output_gradient = launch.read_in(Slot::output_gradient, rows);
  call.query = launch.rows(launch.kernel.reads.in(Slot::operand), rows);
  call.output = launch.read_in(Slot::output, rows);
  call.log_sum_exp = launch.read_in(Slot::log_sum_exp, rows);
  const std::vector<TensorId> of_queries = launch.kernel.writes.all_in(Slot::operand);
  Calls calls;
  for (std::size_t step = 0; step < of_queries.size(); ++step) {
    call.shape.keys.positions = positions_of(launch, attention.keys, static_cast<std::int64_t>(step));
    const KeysAndValues keys = keys_of_step(launch, call.shape, step);
    call.key = keys.key;
    call.value = keys.value;
    call.query_gradient = launch.rows(of_queries[step], rows);
    const KeysAndValues gradients = gradients_of_step(launch, call.shape, step);
    call.key_gradient = gradients.key;
    call.value_gradient = gradients.value;
    calls.push_back(call);
  }
  return calls;
}

// Gradients of query, keys and values of a ring.
struct RingGradients {
  kernels::Tensor query, key, value;
};

RingGradients ring_gradients(const Launch& launch, TensorId query, TensorId both) {
  const Shape& shape = launch.bound.shape;
  const std::int64_t rows = shape.tokens, width = shape.attended_kv_heads() * launch.bound.model.head_dim;
  return {launch.rows(query, rows), launch.part(both, 0, rows, width),
          launch.part(both, rows * width, rows, launch.elements(both) / rows - width)};
}

// The last step writes the gradients of keys and values separately.
RingGradients ring_gradients_made(const Launch& launch) {
  const KernelTensors& writes = launch.kernel.writes;
  const std::int64_t rows = launch.bound.shape.tokens;
  if (writes.has(Slot::keys_and_values))
    return ring_gradients(launch, writes.in(Slot::operand), writes.in(Slot::keys_and_values));
  return {launch.write(0, rows), launch.write_in(Slot::keys, rows), launch.write_in(Slot::values, rows)};
}

}  // namespace

Calls attention_calls(const Launch& launch, const Attention& attention) {
  return attention.backward ? backward(launch, attention) : forward(launch, attention);
}

// A step's output starts the sum, or is merged into the sum so far.
Calls ring_merge_calls(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  const std::int64_t rows = shape.tokens;
  const kernels::Tensor output = launch.write(0, rows), log_sum = launch.write_in(Slot::log_sum_exp, rows);
  const kernels::Tensor part = launch.read(0, rows), of_part = launch.read_in(Slot::log_sum_exp, rows);
  if (!launch.kernel.reads.has(Slot::sum))
    return {kernels::Cast{part, output}, kernels::Cast{of_part, log_sum}};
  return {kernels::Cast{launch.read_in(Slot::sum, rows), output},
          kernels::Cast{launch.read_in(Slot::sum_of_log_sums, rows), log_sum},
          kernels::AttentionMerge{shape.heads, part, of_part, output, log_sum}};
}

// A step's gradients start the sum, or are added to the sum so far.
Calls ring_gradient_sum_calls(const Launch& launch) {
  const KernelTensors& reads = launch.kernel.reads;
  const RingGradients part = ring_gradients(launch, reads[0], reads.in(Slot::keys_and_values)),
                      made = ring_gradients_made(launch);
  if (!reads.has(Slot::sum))
    return {kernels::Cast{part.query, made.query}, kernels::Cast{part.key, made.key},
            kernels::Cast{part.value, made.value}};
  const RingGradients sum = ring_gradients(launch, reads.in(Slot::sum), reads.in(Slot::sum_of_keys));
  const auto add = [](const kernels::Tensor& so_far, const kernels::Tensor& more, const kernels::Tensor& to) {
    kernels::Add call;
    call.output = to;
    call.inputs = {so_far, more};
    return call;
  };
  return {add(sum.query, part.query, made.query), add(sum.key, part.key, made.key),
          add(sum.value, part.value, made.value)};
}

// Packs keys and values into one tensor, with the keys of all rows first.
Calls ring_pack_calls(const Launch& launch) {
  const std::int64_t rows = launch.bound.shape.tokens;
  const TensorId packed = launch.kernel.writes[0];
  const std::int64_t key = launch.elements(launch.kernel.reads[0]),
                     value = launch.elements(launch.kernel.reads[1]);
  return {kernels::Cast{launch.read(0, rows), launch.part(packed, 0, rows, key / rows)},
          kernels::Cast{launch.read(1, rows), launch.part(packed, key, rows, value / rows)}};
}

// Our kernels have already written both into one tensor.
Calls ring_join_calls(const Launch& launch) {
  return {kernels::Cast{launch.whole(launch.kernel.reads[0]), launch.whole(launch.kernel.writes[0])}};
}

}  // namespace rehearse
