#include "plan/frameworks/traits.h"
#include "plan/work/blocks.h"
#include "plan/work/eager.h"
#include "plan/work/pointwise.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

Kernel rearrange(const std::string& name, const std::vector<TensorId>& tensors) {
  Kernel kernel{name, Pointwise::rearrange, tensors, {}};
  kernel.reads.append(tensors);
  return kernel;
}

// Before Transformer Engine, the bias is added to the GEMM's output (mpu/layers.py, output + bias), and
// gradients are joined into one tensor (mpu/utils.py, split_tensor_along_last_dim). With it, gradients are
// joined too (attention.py, _SplitAlongDim), unless attention writes them side by side. It does so where no
// rotation creates new queries and keys. Values are then also copied out of the GEMM's output
// (get_qkv_layout), and so are queries out of groups (Megatron core, attention.py, query.reshape).
void rearrange_heads(BlockBuilder& b, const Model& model, const std::vector<TensorId>& heads) {
  const Shape& shape = b.shape();
  if (!shape.rearranges_heads && !shape.splits_heads) return;
  if (shape.rearranges_heads && model.qkv_bias) b.forward(rearrange("qkv_bias", heads));
  if (shape.splits_heads) {
    if (shape.heads != shape.kv_heads) b.forward(rearrange("query_copy", {heads[0]}));
    if (!model.values_are_keys) b.forward(rearrange("value_copy", {heads[2]}));
  }
  b.undo([&b, heads] {
    std::vector<TensorId> gradients;
    for (const TensorId head : heads) gradients.push_back(b.gradient_of(head));
    b.backward_input(rearrange("qkv_gradient", gradients));
  });
}

// torchtitan, models/llama3/model.py, repeat_kv: also before keys and values go round a ring.
TensorId repeat_heads(BlockBuilder& b, const std::string& name, TensorId heads, double elements) {
  const TensorId repeated = b.activation(name + "_repeated", elements);
  b.forward({name + "_repeat", Pointwise::repeat_heads, {heads}, {repeated}});
  b.undo([&b, name, heads, repeated] {
    b.backward_input({name + "_repeat_backward",
                      Pointwise::sum_repeated_heads,
                      {b.gradient_of(repeated)},
                      {b.new_gradient(heads)}});
  });
  return repeated;
}

// A linear layer with these outputs. `all`: their total width in the model.
ColumnLinear projection_to(BlockBuilder& b, const Model& model, const std::string& name, TensorId input,
                           std::vector<Output> outputs, std::int64_t all) {
  std::int64_t width = 0;
  for (const Output& output : outputs) width += output.width;
  ColumnLinear linear{name, input};
  linear.weight = b.parameter(name + "_weight", Shape::elements(width, b.shape().hidden));
  if (model.qkv_bias) linear.bias = b.parameter(name + "_bias", static_cast<double>(width));
  linear.outputs = std::move(outputs);
  linear.of_model = static_cast<double>(all) / static_cast<double>(b.shape().tp * width);
  return linear;
}

// One GEMM for queries, keys and values (unless values are the keys), and for the gate, if any.
std::vector<TensorId> project(BlockBuilder& b, const Model& model, const Shape& shape, TensorId input) {
  const Output query{"query", shape.heads * shape.head_dim}, key{"key", shape.kv_heads * shape.head_dim},
      value{"value", shape.kv_heads * model.value_width()};
  const std::int64_t queries = model.heads * model.head_dim, keys = model.kv_heads * model.head_dim,
                     values = model.kv_heads * model.value_width();
  if (shape.splits_qkv && !model.attention_gate && !model.values_are_keys && !model.shares_keys) {
    const auto outputs =
        column_linears(b, shape, "qkv",
                       {projection_to(b, model, "query_projection", input, {query}, queries),
                        projection_to(b, model, "key_projection", input, {key}, keys),
                        projection_to(b, model, "value_projection", input, {value}, values)});
    return {outputs[0].front(), outputs[1].front(), outputs[2].front()};
  }
  std::vector<Output> outputs = {query};
  if (!model.shares_keys) outputs.push_back(key);
  if (!model.shares_keys && !model.values_are_keys) outputs.push_back(value);
  std::int64_t all = queries;
  if (!model.shares_keys) all += keys + (model.values_are_keys ? 0 : values);
  if (model.attention_gate) {
    outputs.push_back({"attention_gate", model.gates_heads ? shape.heads : query.width});
    all += model.gates_heads ? model.heads : queries;
  }
  return column_linear(b, shape, projection_to(b, model, "qkv", input, outputs, all));
}

// A norm of each head of queries or keys.
TensorId normalise_heads(BlockBuilder& b, const Model& model, const std::string& name, TensorId heads,
                         std::int64_t width) {
  b.parameters_are(TensorUse::head_norm);
  const TensorId output =
      normalise(b, name, model.qk_norm_plain ? Norm::layer_plain : Norm::rms, heads, width);
  b.parameters_are(TensorUse::other);
  return output;
}

// Attention with keys and values that an earlier layer computed and holds.
Heads attend_to_held(BlockBuilder& b, const Model& model, const Shape& shape, TensorId query) {
  const auto held = [&](const char* name, std::int64_t width) {
    return b.tied_parameter(name, Shape::elements(shape.tokens, shape.kv_heads * width));
  };
  Heads heads{query, held("held_key", shape.head_dim), held("held_value", model.value_width()),
              shape.head_dim, model.value_width()};
  if (model.qk_norm) heads.query = normalise_heads(b, model, "query_norm", heads.query, shape.head_dim);
  return heads;
}

Heads project_heads(BlockBuilder& b, const Model& model, const Shape& shape, TensorId input) {
  const std::vector<TensorId> outputs = project(b, model, shape, input);
  if (model.shares_keys) return attend_to_held(b, model, shape, outputs.front());
  rearrange_heads(b, model, outputs);

  Heads heads{outputs[0], outputs[1], outputs[model.values_are_keys ? 1 : 2], shape.head_dim,
              model.value_width()};
  if (model.attention_gate) heads.gate = outputs.back();
  if (model.value_norm)
    heads.value = normalise(b, "value_norm", Norm::layer_plain, heads.value, model.value_width());
  if (model.qk_norm) {
    const bool is_shared = model.qk_norm_span == QkNormSpan::head;
    const std::int64_t queries = is_shared ? 1 : shape.heads, keys = is_shared ? 1 : shape.kv_heads;
    heads.query = normalise_heads(b, model, "query_norm", heads.query, queries * shape.head_dim);
    heads.key = normalise_heads(b, model, "key_norm", heads.key, keys * shape.head_dim);
  }
  if (shape.packs_heads) {
    const PackedHeads packed = pack_heads(b, heads.query, heads.key, heads.value);
    heads.query = packed.query;
    heads.key = packed.key;
    heads.value = packed.value;
    if (packed.held >= 0) heads.held = {packed.held};
  }
  if (model.positions == Positions::rotary) {
    // Scaling's values are a view of the GEMM's output (core/nn/attention/attention.py), so all of that
    // output stays.
    if (!shape.fused_rotary && shape.keeps_views) heads.held = {outputs[0], outputs[1]};
    const std::vector<TensorId> rotated = rotate(b, heads.query, heads.key);
    heads.query = rotated[0];
    heads.key = rotated[1];
  }
  if (shape.repeats_heads) {
    const double rows = Shape::elements(shape.tokens, shape.heads);
    heads.key = repeat_heads(b, "key", heads.key, rows * static_cast<double>(heads.width));
    heads.value = repeat_heads(b, "value", heads.value, rows * static_cast<double>(heads.v_width));
  }
  return heads;
}

// A GEMM of two activations, and the GEMMs for the gradients of the left and the right one.
struct CoreProducts {
  AttentionProduct there, left, right;
};

Gemm as(AttentionProduct what, Gemm gemm) {
  gemm.attention = what;
  return gemm;
}

TensorId multiply(BlockBuilder& b, const std::string& name, TensorId left, TensorId right, const Gemm& gemm,
                  const CoreProducts& what, const std::string& output_name) {
  const TensorId output =
      b.activation(output_name, Shape::elements(gemm.m, gemm.n) * static_cast<double>(gemm.batch));
  b.forward({name, as(what.there, gemm), {left, {right, Slot::right}}, {output}});
  b.undo([&b, name, left, right, gemm, what, output] {
    const TensorId gradient = b.gradient_of(output);
    b.backward_input({name + "_left_gradient",
                      as(what.left, {gemm.m, gemm.k, gemm.n, gemm.batch}),
                      {gradient, {right, Slot::right}},
                      {b.new_gradient(left)}});
    b.backward_input({name + "_right_gradient",
                      as(what.right, {gemm.k, gemm.n, gemm.m, gemm.batch}),
                      {left, {gradient, Slot::right}},
                      {b.new_gradient(right)}});
  });
  return output;
}

// Scaling and the causal mask are fused into the softmax, whose backward kernel needs its output only
// (Megatron-LM, fused_kernels/scaled_upper_triang_masked_softmax.h).
TensorId softmax(BlockBuilder& b, TensorId scores, TensorId sinks) {
  if (!b.shape().fused_softmax) return softmax_eagerly(b, scores, sinks);
  const TensorId output = b.activation("probabilities", b[scores].elements);
  b.forward({"softmax", Pointwise::causal_softmax, {scores}, {output}});
  b.undo([&b, scores, output] {
    b.backward_input({"softmax_backward",
                      Pointwise::causal_softmax_backward,
                      {b.gradient_of(output), {output, Slot::output}},
                      {b.new_gradient(scores)}});
  });
  return output;
}

// The query heads that share a key and value head are rows of one GEMM.
TensorId unfused_core(BlockBuilder& b, const Model& model, const Shape& shape, const Heads& heads,
                      bool rerun) {
  const std::size_t first = b.forward_kernels();
  const std::int64_t batch = shape.batch * shape.kv_heads;
  const std::int64_t rows = shape.seq * (shape.heads / shape.kv_heads);
  const TensorId scores = multiply(
      b, "scores", heads.query, heads.key, Gemm{rows, shape.seq, heads.width, batch},
      {AttentionProduct::scores, AttentionProduct::query_gradient, AttentionProduct::key_gradient}, "scores");
  TensorId weights = softmax(b, scores, heads.sinks);
  if (model.dropout) weights = drop_scores(b, "attention_dropout", weights, "probabilities_dropped");
  const TensorId output = multiply(
      b, "weighted_values", weights, heads.value, Gemm{rows, heads.v_width, shape.seq, batch},
      {AttentionProduct::output, AttentionProduct::probability_gradient, AttentionProduct::value_gradient},
      "attended");
  // context_layer.permute().contiguous() of Megatron-LM, model/transformer.py
  if (shape.rearranges_heads) b.forward(rearrange("attended_in_rows", {output}));
  if (rerun) b.rerun_from(first, output);
  return output;
}

}  // namespace

namespace {

// The gate of latent attention, whose queries, keys and values are no single GEMM (Kimi K3,
// mla_use_output_gate).
TensorId latent_gate(BlockBuilder& b, const Model& model, const Shape& shape, TensorId input) {
  const std::int64_t width = shape.heads * model.latent->v_head_dim;
  ColumnLinear gate{"attention_gate", input};
  gate.weight = b.parameter("attention_gate_weight", Shape::elements(width, shape.hidden));
  gate.outputs = {{"attention_gate", width}};
  return column_linear(b, shape, gate).front();
}

}  // namespace

Branch attention(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape, TensorId input) {
  Heads heads =
      model.latent ? latent_heads(b, model, plan, shape, input) : project_heads(b, model, shape, input);
  if (model.latent && model.attention_gate) heads.gate = latent_gate(b, model, shape, input);
  if (model.indexer) {
    const bool of_rows = model.indexer->block > 0;
    heads.held.push_back(choose_keys(b, *model.indexer, shape, input,
                                     of_rows ? input : heads.compressed_query,
                                     of_rows ? model.hidden : model.latent->q_rank));
  }
  if (model.attention_sinks) heads.sinks = b.parameter("sinks", static_cast<double>(shape.heads));
  // Scaling asks the GPU how long the longest sequence is (core/nn/attention/attention.py,
  // get_max_seq_length).
  if (traits(plan).attention_waits_for_host && plan.fused_attention) b.host_waits();
  const bool rerun = reruns(plan, RecomputeModule::core_attn);
  b.unmeasured(model.caps_scores);
  TensorId attended = plan.fused_attention ? fused_attention(b, model, shape, heads, rerun)
                                           : unfused_core(b, model, shape, heads, rerun);
  b.unmeasured(false);
  if (heads.gate >= 0)
    attended = activate(b, "attention_gated", {heads.gate, attended}, b[attended].elements,
                        shape.heads * heads.v_width);
  Branch branch{
      row_linear(b, shape, "projection", attended, shape.heads * heads.v_width, shape.tp_comm_proj_sms)};
  if (model.attention_out_bias)
    branch.bias = b.parameter("projection_bias", static_cast<double>(shape.hidden));
  return branch;
}

}  // namespace rehearse
