// Keys and values go round a ring, as in Transformer Engine 2.2 (AttnFuncWithCPAndKVP2P). They are packed
// into a buffer that is sent on. Each step's output is scaled into the sum. In the backward pass, each step's
// gradients are joined and added to a second buffer, which follows the first. Steps that touch half of a
// rank's queries or keys count as whole steps: the last rank has all queries in each step, the first one all
// keys.
#include <fmt/core.h>

#include "plan/work/attention_core.h"

namespace rehearse {

namespace {

double travelling(const BlockBuilder& b, const Heads& heads) {
  return b[heads.key].elements + b[heads.value].elements;
}

std::string at(const char* name, std::size_t step) {
  return fmt::format("{}_{}", name, step);
}

// Every step works on the keys and values from the next rank, while the previous ones are sent on. In the
// backward pass, their gradients follow them. So the first step sends keys and values, the last one
// gradients, and all others both.
void send_round(BlockBuilder& b, const Shape& shape, TensorId packed, TensorId last_stop) {
  const Collective send{CollectiveOp::send_receive, CommGroup::context, b[packed].bytes(), shape.cp - 1};
  b.forward({"ring", send, {packed}, {last_stop}, {.attention = true}});
}

void send_round_backward(BlockBuilder& b, const Shape& shape, TensorId packed,
                         const std::vector<TensorId>& stops) {
  const double bytes = b[packed].bytes();
  const Collective one{CollectiveOp::send_receive, CommGroup::context, bytes, 2};
  const Collective both{CollectiveOp::send_receive, CommGroup::context, 2 * bytes, shape.cp - 2};
  b.backward_input({"ring_backward_ends", one, {packed}, {stops[0]}, {.attention = true}});
  if (shape.cp == 2) return;
  b.backward_input({"ring_backward_middle", both, {packed}, {stops[1]}, {.attention = true}});
}

// Sums {output, log-sum-exp} of every step into those of `core`. The first step's begin the sum, and each
// later one adds to it.
void merge(BlockBuilder& b, const std::vector<TensorId>& parts, const Core& core) {
  KernelTensors sum;
  for (std::size_t step = 0; 2 * step < parts.size(); ++step) {
    const TensorId part = parts[2 * step], log_sum_exp = parts[2 * step + 1];
    KernelTensors reads = {part, {log_sum_exp, Slot::log_sum_exp}};
    reads.append(sum);
    KernelTensors made = {core.output, {core.log_sum_exp, Slot::log_sum_exp}};
    if (2 * step + 2 < parts.size()) {
      const TensorId attended = b.activation(at("attended_sum", step), b[part].elements);
      made = {attended,
              {b.activation(at("log_sum_exp_sum", step), b[log_sum_exp].elements, kLogSumExpBytes),
               Slot::log_sum_exp}};
    }
    b.forward({at("ring_merge", step), Pointwise::ring_merge, std::move(reads), made});
    sum = {{made[0], Slot::sum}, {made[1], Slot::sum_of_log_sums}};
  }
}

// Sums {query's, packed key's and value's} gradients of every step in the same way.
void merge_gradients(BlockBuilder& b, const std::vector<TensorId>& parts, const Heads& heads) {
  KernelTensors sum;
  for (std::size_t step = 0; 2 * step < parts.size(); ++step) {
    const double elements = travelling(b, heads), queries = b[heads.query].elements;
    const TensorId joined = b.scratch_gradient(at("ring_gradients_joined", step), elements);
    b.backward_input({at("ring_join", step), Pointwise::ring_join, {parts[2 * step + 1]}, {joined}});
    KernelTensors reads = {parts[2 * step], {joined, Slot::keys_and_values}};
    reads.append(sum);
    KernelTensors made;
    if (2 * step + 2 == parts.size()) {
      made = new_gradients(b, slotted(heads));
    } else {
      made.push_back(b.scratch_gradient(at("query_gradient_sum", step), queries));
      made.push_back(b.scratch_gradient(at("key_and_value_gradient_sum", step), elements),
                     Slot::keys_and_values);
    }
    b.backward_input({at("ring_gradient_sum", step), Pointwise::ring_gradient_sum, std::move(reads), made});
    sum = {{made[0], Slot::sum}, {made[1], Slot::sum_of_keys}};
  }
}

void ring_backward(BlockBuilder& b, const Shape& shape, const Heads& heads, const Core& core) {
  const double elements = travelling(b, heads);
  const TensorId packed = b.scratch_gradient("ring_packed_again", elements);
  b.backward_input({"ring_pack_again", Pointwise::ring_pack, {heads.key, heads.value}, {packed}});
  KernelTensors operands = {heads.query, {packed, Slot::keys_and_values}};
  std::vector<TensorId> stops = {b.scratch_gradient("ring_backward_ends_received", elements)};
  if (shape.cp > 2) stops.push_back(b.scratch_gradient("ring_backward_middle_received", 2 * elements));
  send_round_backward(b, shape, packed, stops);
  for (const TensorId stop : stops) operands.push_back(stop, Slot::arriving);
  KernelTensors parts;
  for (std::size_t step = 0; step < static_cast<std::size_t>(shape.cp); ++step) {
    parts.push_back(b.scratch_gradient(at("query_gradient_step", step), b[heads.query].elements));
    parts.push_back(b.scratch_gradient(at("key_and_value_gradient_step", step), elements),
                    Slot::keys_and_values);
  }
  attend_backward(b, core, operands, parts);
  merge_gradients(b, parts, heads);
}

}  // namespace

TensorId ring_attention(BlockBuilder& b, const Model& model, const Shape& shape, const Heads& heads,
                        bool rerun) {
  const std::size_t first = b.forward_kernels();
  const TensorId packed = b.activation("ring_packed", travelling(b, heads));
  b.forward({"ring_pack", Pointwise::ring_pack, {heads.key, heads.value}, {packed}});
  const TensorId last_stop = b.activation("ring_received", travelling(b, heads));
  send_round(b, shape, packed, last_stop);

  Core core{attention_of(model, shape, heads), slotted(heads)};
  core.what.steps = shape.cp;
  const double elements = output_elements(shape, heads), rows = Shape::elements(shape.tokens, shape.heads);
  KernelTensors parts;
  for (std::size_t step = 0; step < static_cast<std::size_t>(shape.cp); ++step) {
    parts.push_back(b.activation(at("attended_step", step), elements));
    parts.push_back(b.activation(at("log_sum_exp_step", step), rows, kLogSumExpBytes), Slot::log_sum_exp);
  }
  core.sinks = heads.sinks;
  KernelTensors reads = {heads.query, {packed, Slot::keys_and_values}, {last_stop, Slot::arriving}};
  if (core.sinks >= 0) reads.push_back(core.sinks, Slot::sinks);
  b.forward({"attention", core.what, reads, parts});

  core.output = b.activation("attended", elements);
  core.log_sum_exp = b.activation("log_sum_exp", rows, kLogSumExpBytes);
  merge(b, parts, core);
  core.output_for_backward = rerun ? b.rerun_from(first, core.output) : core.output;
  b.undo([&b, shape, heads, core] { ring_backward(b, shape, heads, core); });
  return core.output;
}

}  // namespace rehearse
