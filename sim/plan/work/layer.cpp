#include "plan/work/blocks.h"
#include "plan/work/pointwise.h"

namespace rehearse {

namespace {

std::string name_of(const Model& model, LayerSort sort, LayerKind kind) {
  std::string name = sort.sparse ? "sparse_layer" : "layer";
  if (sort.sees_all && model.window > 0) name = "full_" + name;
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

// The branch after attention: an MLP, or experts.
Branch transform(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape, TensorId input,
                 bool sparse) {
  const std::size_t first = b.forward_kernels();
  const Branch branch = sparse ? experts(b, model, plan, shape, input)
                               : feed_forward(b, model, shape, {"mlp", shape.ffn, model.mlp_bias}, input);
  if (reruns(plan, sparse ? RecomputeModule::moe : RecomputeModule::mlp)) b.rerun_from(first);
  return branch;
}

}  // namespace

LayerSort sort_of(const Model& model, std::int64_t layer) {
  return {model.is_sparse(layer), model.window_of(layer) == 0};
}

TensorId layer(BlockBuilder& b, const Model& model, const Plan& plan, LayerSort sort, TensorId input) {
  const Shape& shape = b.shape();
  const bool sparse = sort.sparse;
  b.enter(LayerPart::attention);
  const bool fuses = shape.quantised && shape.fused_norm && plan.framework != Framework::torchtitan;
  const TensorId attention_in =
      normalise_layer(b, model, plan, "attention_norm", input, fuses && !model.latent);
  Model seen = model;
  if (sort.sees_all) seen.window = 0;
  const Branch attended = attention(b, seen, plan, shape, attention_in);
  const TensorId middle =
      add_residual(b, {"attention_residual", input, attended.output, attended.bias, model.dropout}, "middle");

  b.enter(sparse ? LayerPart::router : LayerPart::mlp);
  const TensorId mlp_source = model.parallel_residual ? input : middle;
  const TensorId mlp_in = normalise_layer(b, model, plan, "mlp_norm", mlp_source, fuses && !sparse);
  const Branch transformed = transform(b, model, plan, shape, mlp_in, sparse);
  return add_residual(b, {"mlp_residual", middle, transformed.output, transformed.bias, model.dropout},
                      "output");
}

Block layer_block(const Model& model, const Plan& plan, LayerSort sort, LayerKind kind) {
  const Shape shape = shape_on_one_rank(model, plan);
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
