// FlashAttention, alone or over the ranks of a context-parallel group.
#include "plan/work/attention_core.h"

namespace rehearse {

namespace {

// Scaled like linear layers, except beside NVFP4, which attention does not support. There it is scaled by
// tensor (Transformer Engine, dot_product_attention.py, fp8_dpa under an NVFP4 recipe).
bool scaled_in_blocks(const Shape& shape) {
  return shape.scaled_by_block && !shape.fp4;
}

// Each chunk of a sequence counts as a sequence; the last one is padded. With context parallelism, chunks are
// costed as the whole sequence.
void see_chunks(Attention& what, const Shape& shape) {
  const std::int64_t chunk = what.window;
  what.window = 0;
  if (chunk == 0 || shape.cp > 1 || shape.seq <= chunk) return;
  what.batch *= (shape.seq + chunk - 1) / chunk;
  what.query = what.keys = chunk;
}

}  // namespace

Attention attention_of(const Model& model, const Shape& shape, const Heads& heads) {
  Attention what{shape.batch, shape.heads, shape.attended_kv_heads(), heads.width, shape.seq, shape.seq};
  if (heads.v_width != heads.width) what.v_head_dim = heads.v_width;
  what.window = model.window;
  what.causal = !model.bidirectional;
  if (model.window_in_chunks) see_chunks(what, shape);
  if (shape.fp8_attention)
    what.operands = scaled_in_blocks(shape) ? AttentionOperands::mxfp8 : AttentionOperands::fp8;
  return what;
}

double output_elements(const Shape& shape, const Heads& heads) {
  return Shape::elements(shape.tokens, shape.heads * heads.v_width);
}

namespace {

// Bytes of an element as attention in fp8 reads it. With block scaling, a copy by rows and one by columns
// exist, for the different GEMMs (Transformer Engine, dot_product_attention/utils.py, combine_and_quantize).
double quantized_bytes(const Shape& shape) {
  return scaled_in_blocks(shape) ? 2 : 1;
}

Pointwise quantizing(const Shape& shape) {
  return scaled_in_blocks(shape) ? Pointwise::quantize_blocks : Pointwise::quantize;
}

// The output's gradient in the form that the backward kernel reads.
TensorId output_gradient(BlockBuilder& b, const Core& core) {
  const TensorId gradient = b.gradient_of(core.output);
  if (!b.shape().fp8_attention) return gradient;
  const TensorId quantized =
      b.scratch_gradient("attended_gradient_quantised", b[gradient].elements, quantized_bytes(b.shape()));
  b.backward_input({"attended_gradient_quantise", quantizing(b.shape()), {gradient}, {quantized}});
  return quantized;
}

}  // namespace

void attend_backward(BlockBuilder& b, const Core& core, const KernelTensors& operands, KernelTensors makes) {
  Attention what = core.what;
  what.backward = true;
  KernelTensors reads = {{output_gradient(b, core), Slot::output_gradient}};
  reads.append(operands);
  reads.push_back(core.output_for_backward, Slot::output);
  reads.push_back(core.log_sum_exp, Slot::log_sum_exp);
  b.backward_input({"attention_backward", what, reads, std::move(makes)});
  if (core.sinks < 0) return;
  b.backward_weight(
      {"sinks_gradient", Pointwise::bias_gradient, {core.log_sum_exp}, {b.parameter_gradient(core.sinks)}});
}

KernelTensors slotted(const Heads& heads) {
  return {heads.query, {heads.key, Slot::keys}, {heads.value, Slot::values}};
}

KernelTensors new_gradients(BlockBuilder& b, const KernelTensors& of) {
  KernelTensors gradients;
  for (std::size_t i = 0; i < of.size(); ++i) gradients.push_back(b.new_gradient(of[i]), of.slot(i));
  return gradients;
}

std::vector<TensorId> exchange_heads(BlockBuilder& b, const std::string& name, Exchange what,
                                     const KernelTensors& from) {
  KernelTensors to;
  Collective there{.op = CollectiveOp::all_to_all, .group = CommGroup::context, .exchange = what};
  for (std::size_t i = 0; i < from.size(); ++i) {
    to.push_back(b.activation(b[from[i]].name + "_exchanged", b[from[i]].elements), from.slot(i));
    there.bytes += b[from[i]].bytes();
  }
  b.forward({name, there, from, to});
  Collective back = there;
  back.exchange = what == Exchange::rows_for_heads ? Exchange::heads_for_rows : Exchange::rows_for_heads;
  b.undo([&b, name, back, from, to] {
    KernelTensors gradients;
    for (std::size_t i = 0; i < to.size(); ++i) gradients.push_back(b.gradient_of(to[i]), to.slot(i));
    b.backward_input({name + "_backward", back, gradients, new_gradients(b, from)});
  });
  return to;
}

namespace {

// FlashAttention keeps its operands, its output and one log-sum-exp a row; the scores never reach memory.
Core attend(BlockBuilder& b, const Shape& shape, const Attention& what, KernelTensors operands,
            TensorId sinks, double elements, const std::string& output) {
  const double rows = Shape::elements(shape.tokens, shape.heads);
  Core core{what, std::move(operands), b.activation(output, elements), -1,
            b.activation("log_sum_exp", rows, kLogSumExpBytes)};
  KernelTensors reads = core.operands;
  if (sinks >= 0) reads.push_back(sinks, Slot::sinks);
  b.forward({"attention", what, reads, {core.output, {core.log_sum_exp, Slot::log_sum_exp}}});
  core.output_for_backward = core.output;
  core.sinks = sinks;
  return core;
}

// Queries, keys and values in the form that attention reads: quantized in one kernel. The results stay.
KernelTensors operands_of(BlockBuilder& b, const Shape& shape, const Heads& heads) {
  const KernelTensors all = slotted(heads);
  if (!shape.fp8_attention) return all;
  KernelTensors quantized;
  for (std::size_t i = 0; i < all.size(); ++i)
    quantized.push_back(
        b.activation(b[all[i]].name + "_quantised", b[all[i]].elements, quantized_bytes(shape)), all.slot(i));
  const Pointwise type =
      scaled_in_blocks(shape) ? Pointwise::quantize_head_blocks : Pointwise::quantize_heads;
  b.forward({"attention_quantise", type, all, quantized});
  return quantized;
}

TensorId alone(BlockBuilder& b, const Model& model, const Shape& shape, const Heads& heads, bool rerun) {
  const std::size_t first = b.forward_kernels();
  Core core = attend(b, shape, attention_of(model, shape, heads), operands_of(b, shape, heads), heads.sinks,
                     output_elements(shape, heads), "attended");
  if (rerun) core.output_for_backward = b.rerun_from(first, core.output);
  b.undo([&b, core, heads] {
    KernelTensors operands = core.operands;
    for (const TensorId tensor : heads.held) operands.push_back(tensor, Slot::held);
    attend_backward(b, core, operands, new_gradients(b, slotted(heads)));
  });
  return core.output;
}

// Keys and values of the whole sequence are gathered before attention, and their gradients are scattered
// after it, with no kernel beside them. The gathered tensor is dropped and gathered again (Transformer
// Engine, AttnFuncWithCPAndKVAllGather).
TensorId gathered(BlockBuilder& b, const Model& model, const Shape& shape, const Heads& heads, bool rerun) {
  const std::size_t first = b.forward_kernels();
  const auto ranks = static_cast<double>(shape.cp);
  const double elements = ranks * (b[heads.key].elements + b[heads.value].elements);
  const Collective gather{CollectiveOp::all_gather, CommGroup::context, elements * shape.element_bytes};
  const Collective scatter{CollectiveOp::reduce_scatter, CommGroup::context, gather.bytes};
  const TensorId whole = b.activation("keys_and_values_gathered", elements);
  b.forward({"keys_and_values_all_gather", gather, {heads.key, heads.value}, {whole}});

  Attention what = attention_of(model, shape, heads);
  what.keys = shape.seq * shape.cp;
  Core core = attend(b, shape, what, {heads.query, {whole, Slot::keys_and_values}}, heads.sinks,
                     output_elements(shape, heads), "attended");
  if (rerun) core.output_for_backward = b.rerun_from(first, core.output);
  b.undo([&b, heads, core, gather, scatter, elements] {
    const TensorId again = b.activation("keys_and_values_gathered_again", elements);
    const TensorId gradient = b.scratch_gradient("keys_and_values_gradient_partial", elements);
    b.backward_input({"keys_and_values_all_gather_again", gather, {heads.key, heads.value}, {again}});
    attend_backward(b, core, {heads.query, {again, Slot::keys_and_values}},
                    {b.new_gradient(heads.query), {gradient, Slot::keys_and_values}});
    b.backward_input({"keys_and_values_gradient_reduce_scatter",
                      scatter,
                      {gradient},
                      new_gradients(b, {heads.key, heads.value})});
  });
  return core.output;
}

// Between the two all-to-alls, a rank has the whole sequence for its share of the heads.
TensorId all_to_all(BlockBuilder& b, const Model& model, const Shape& shape, const Heads& heads, bool rerun) {
  const std::size_t first = b.forward_kernels();
  const std::vector<TensorId> exchanged =
      exchange_heads(b, "heads_all_to_all", Exchange::rows_for_heads, slotted(heads));
  const KernelTensors operands = {exchanged[0], {exchanged[1], Slot::keys}, {exchanged[2], Slot::values}};
  Attention what = attention_of(model, shape, heads);
  what.heads = shape.heads / shape.cp;
  what.kv_heads = shape.attended_kv_heads() / shape.cp;
  what.query = what.keys = shape.seq * shape.cp;
  Core core = attend(b, shape, what, operands, heads.sinks, output_elements(shape, heads), "attended_heads");
  b.undo([&b, core] { attend_backward(b, core, core.operands, new_gradients(b, core.operands)); });
  const TensorId output =
      exchange_heads(b, "attended_all_to_all", Exchange::heads_for_rows, {core.output}).front();
  if (rerun) b.rerun_from(first, output);
  return output;
}

}  // namespace

TensorId fused_attention(BlockBuilder& b, const Model& model, const Shape& shape, const Heads& heads,
                         bool rerun) {
  if (shape.cp == 1) return alone(b, model, shape, heads, rerun);
  switch (shape.cp_exchange) {
    case ContextExchange::ring:
      return ring_attention(b, model, shape, heads, rerun);
    case ContextExchange::gather:
      return gathered(b, model, shape, heads, rerun);
    case ContextExchange::all_to_all:
      break;
  }
  return all_to_all(b, model, shape, heads, rerun);
}

}  // namespace rehearse
