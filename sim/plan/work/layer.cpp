#include "plan/frameworks/traits.h"
#include "plan/work/blocks.h"
#include "plan/work/pointwise.h"

namespace rehearse {

namespace {

const char* name_of(LayerType type) {
  switch (type) {
    case LayerType::mamba:
      return "mamba_layer";
    case LayerType::attention:
      return "attention_layer";
    case LayerType::mlp:
      return "mlp_layer";
    case LayerType::experts:
      return "expert_layer";
    case LayerType::transformer:
      return "layer";
  }
  return "";
}

std::string name_of(const Model& model, LayerSort sort, LayerKind kind) {
  std::string name = name_of(sort.type);
  if (sort.type == LayerType::transformer && sort.sparse) name = "sparse_layer";
  if (!sort.rotates && model.window == 0) name = "unrotated_" + name;
  if (sort.recurs) name = "recurrent_" + name;
  if (sort.scores_keys && !model.indexer->layers.empty()) name = "scoring_" + name;
  if (sort.sees_all && model.window > 0) name = "full_" + name;
  if (sort.in_bf16) name = "bf16_" + name;
  return kind == LayerKind::planned ? name : name + (kind == LayerKind::kept ? "_kept" : "_joined");
}

// What a norm makes is dropped once the linear layer has read it, and made again. `joined` with that layer
// (Transformer Engine's LayerNormLinear) it writes fp8 itself if the scale is known before, else at least the
// maximum (csrc/extensions/normalization.cpp; blocks of 32 only as cuDNN's, NVTE_NORM_FWD_USE_CUDNN).
TensorId normalise_layer(BlockBuilder& b, const Model& model, const Plan& plan, const std::string& name,
                         TensorId input, bool joined) {
  const std::size_t first = b.forward_kernels();
  const bool at_once = joined && !b.shape().dynamic_scaling && !b.shape().scaled_by_block;
  const TensorId output = normalise(b, name, model.norm, input, model.hidden, at_once);
  if (joined && b.shape().dynamic_scaling && !b.shape().fp4) b.finds_maximum();
  if (reruns(plan, RecomputeModule::layernorm)) b.rerun_from(first);
  return output;
}

// Of a branch's output, ahead of the residual sum.
TensorId normalise_branch(BlockBuilder& b, const Model& model, const std::string& name, TensorId output) {
  return model.norms_after() ? normalise(b, name, model.norm, output, model.hidden) : output;
}

// Of a residual sum (BERT).
TensorId normalise_sum(BlockBuilder& b, const Model& model, const std::string& name, TensorId sum) {
  return model.norm_place == NormPlace::after_sum ? normalise(b, name, model.norm, sum, model.hidden) : sum;
}

// A residual branch: its norm, what it computes, and the sum with `input`. `reads`: what the norm reads.
struct Part {
  const Model& model;
  const Plan& plan;
  LayerSort sort;
  bool fuses;  // norms with the linear layers that follow

  // What attention reads of `input`.
  TensorId before_attention(BlockBuilder& b, TensorId input) const {
    b.enter(LayerPart::attention);
    if (!model.norms_before()) return input;
    return normalise_layer(b, model, plan, "attention_norm", input, fuses && !model.latent);
  }

  TensorId attend(BlockBuilder& b, TensorId rows, TensorId input, const std::string& output) const {
    Model seen = model;
    if (sort.sees_all) seen.window = 0;
    if (!sort.rotates) {
      seen.positions = Positions::none;
      seen.qk_norm = model.qk_norm && !model.qk_norm_plain;
    }
    if (model.indexer) seen.window = model.indexer->top_k;
    if (!sort.scores_keys) seen.indexer.reset();
    const Branch attended =
        sort.recurs ? recurrence(b, model, plan, b.shape(), rows) : attention(b, seen, plan, b.shape(), rows);
    const TensorId branch = normalise_branch(b, model, "attention_output_norm", attended.output);
    return normalise_sum(
        b, model, "attention_sum_norm",
        add_residual(b, {"attention_residual", input, branch, attended.bias, model.dropout}, output));
  }

  TensorId scan(BlockBuilder& b, TensorId input) const {
    b.enter(LayerPart::mamba);
    const TensorId rows = normalise_layer(b, model, plan, "mamba_input_norm", input, fuses);
    const Branch scanned =
        model.state_space ? mamba(b, model, b.shape(), rows) : recurrence(b, model, plan, b.shape(), rows);
    return add_residual(b, {"mamba_residual", input, scanned.output, scanned.bias, model.dropout},
                        "mamba_output");
  }

  // What an MLP, or experts, read of `input`.
  TensorId before_mlp(BlockBuilder& b, TensorId input) const {
    b.enter(sort.sparse ? LayerPart::router : LayerPart::mlp);
    if (!model.norms_before()) return input;
    return normalise_layer(b, model, plan, "mlp_norm", input, fuses && !sort.sparse);
  }

  TensorId transform(BlockBuilder& b, TensorId rows, TensorId input) const {
    b.enter(sort.sparse ? LayerPart::router : LayerPart::mlp);
    const std::size_t first = b.forward_kernels();
    const Branch transformed =
        sort.sparse ? experts(b, model, plan, b.shape(), rows)
                    : feed_forward(b, model, b.shape(), {"mlp", b.shape().ffn, model.mlp_bias}, rows);
    if (reruns(plan, sort.sparse ? RecomputeModule::moe : RecomputeModule::mlp)) b.rerun_from(first);
    const TensorId branch = normalise_branch(b, model, "mlp_output_norm", transformed.output);
    return normalise_sum(
        b, model, "mlp_sum_norm",
        add_residual(b, {"mlp_residual", input, branch, transformed.bias, model.dropout}, "output"));
  }
};

}  // namespace

LayerSort sort_of(const Model& model, const Plan& plan, std::int64_t layer) {
  const bool at_an_end = layer < plan.bf16_first_layers || layer >= model.layers - plan.bf16_last_layers;
  return {model.type_of(layer), model.is_sparse(layer),   model.window_of(layer) == 0, at_an_end,
          model.recurs(layer),  model.scores_keys(layer), model.rotates(layer)};
}

TensorId layer(BlockBuilder& b, const Model& model, const Plan& plan, LayerSort sort, TensorId input) {
  const Shape& shape = b.shape();
  const bool fuses = shape.quantized && shape.fused_norm && traits(plan).fp8 != Fp8Library::torchao;
  const Part part{model, plan, sort, fuses};
  switch (sort.type) {
    case LayerType::attention:
      return part.attend(b, part.before_attention(b, input), input, "attention_output");
    case LayerType::mamba:
      return part.scan(b, input);
    case LayerType::mlp:
    case LayerType::experts:
      return part.transform(b, part.before_mlp(b, input), input);
    case LayerType::transformer:
      break;
  }
  const TensorId rows = part.before_attention(b, input);
  const TensorId middle = part.attend(b, rows, input, "middle");
  if (model.norm_place == NormPlace::shared) return part.transform(b, rows, middle);
  return part.transform(b, part.before_mlp(b, model.parallel_residual ? input : middle), middle);
}

Block layer_block(const Model& model, const Plan& plan, LayerSort sort, LayerKind kind) {
  const Shape shape = sort.in_bf16 ? in_bf16(shape_on_one_rank(model, plan)) : shape_on_one_rank(model, plan);
  BlockBuilder b(name_of(model, sort, kind), shape);
  b.hands_on(layer(b, model, plan, sort, b.input("input", shape.row_elements())));

  if (plan.recompute == Recompute::full && kind != LayerKind::kept) {
    b.rerun_from(0);
    const bool alone = plan.recompute_method == RecomputeMethod::block || plan.recompute_layers == 1;
    if (plan.recompute_early_stop && alone) b.stop_rerun_early();
  }
  if (plan.recompute == Recompute::op) b.rerun_by_op();
  return b.finish(kind == LayerKind::joined);
}

}  // namespace rehearse
