#include <fmt/core.h>

#include "plan/frameworks/traits.h"
#include "plan/work/blocks.h"
#include "plan/work/compressed.h"
#include "plan/work/per_layer.h"
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
  if (sort.shape > 0 && model.windows.empty() && model.full_every == 0)
    name = fmt::format("{}_of_shape_{}", name, sort.shape);
  if (sort.encodes) name = (sort.ends_encoder ? "last_encoder_" : "encoder_") + name;
  if (sort.in_bf16) name = "bf16_" + name;
  return kind == LayerKind::planned ? name : name + (kind == LayerKind::kept ? "_kept" : "_joined");
}

// A norm's output is dropped once the linear layer has read it, and recomputed. `joined` with that layer
// (Transformer Engine's LayerNormLinear), the norm writes fp8 itself if the scale is known before, else at
// least the maximum (csrc/extensions/normalization.cpp). Blocks of 32 are written only by cuDNN's norm
// (NVTE_NORM_FWD_USE_CUDNN).
TensorId normalise_layer(BlockBuilder& b, const Model& model, const Plan& plan, const std::string& name,
                         TensorId input, bool joined) {
  const std::size_t first = b.forward_kernels();
  const bool at_once = joined && !b.shape().dynamic_scaling && !b.shape().scaled_by_block;
  const TensorId output = normalise(b, name, model.norm, input, model.hidden, at_once);
  if (joined && b.shape().dynamic_scaling && !b.shape().fp4) b.finds_maximum();
  if (reruns(plan, RecomputeModule::layernorm)) b.rerun_from(first);
  return output;
}

// The norm of a branch's output, before the residual sum.
TensorId normalise_branch(BlockBuilder& b, const Model& model, const std::string& name, TensorId output) {
  return model.norms_after() ? normalise(b, name, model.norm, output, model.hidden) : output;
}

// The norm of a residual sum (BERT).
TensorId normalise_sum(BlockBuilder& b, const Model& model, const std::string& name, TensorId sum) {
  return model.norm_place == NormPlace::after_sum ? normalise(b, name, model.norm, sum, model.hidden) : sum;
}

// A residual branch: its norm, its kernels, and the sum with `input`. `reads`: the norm's input.
struct Part {
  const Model& model;
  const Plan& plan;
  LayerSort sort;
  bool fuses;  // norms with the linear layers that follow

  // The rows of `input` that attention reads.
  TensorId before_attention(BlockBuilder& b, TensorId input) const {
    b.enter(LayerPart::attention);
    if (!model.norms_before()) return input;
    if (model.depth_block > 0) input = sum_depths(b, model, "attention_depth", input);
    return normalise_layer(b, model, plan, "attention_norm", input, fuses && !model.latent);
  }

  TensorId attend(BlockBuilder& b, TensorId rows, TensorId input, const std::string& output) const {
    Model seen = model;
    if (sort.sees_all) seen.window = 0;
    if (!sort.rotates) {
      seen.positions = Positions::none;
      seen.qk_norm = model.qk_norm && !model.qk_norm_plain;
    }
    if (model.indexer && (sort.scores_keys || model.indexer->is_shared())) seen.window = model.indexer->top_k;
    if (!sort.scores_keys) seen.indexer.reset();
    seen.bidirectional = model.bidirectional || sort.encodes;
    const Branch attended = model.compressed ? compressed_attention(b, model, plan, b.shape(), rows)
                            : sort.recurs    ? recurrence(b, model, plan, b.shape(), rows)
                                             : attention(b, seen, plan, b.shape(), rows);
    const TensorId branch = normalise_branch(b, model, "attention_output_norm", attended.output);
    const TensorId residual = model.mamba_beside_attention ? add_scanned(b, rows, input) : input;
    return normalise_sum(
        b, model, "attention_sum_norm",
        add_residual(b, {"attention_residual", residual, branch, attended.bias, model.dropout}, output));
  }

  // Attention to the encoder's output. Its keys and values are costed as maps of the decoder's own rows,
  // which are equal in number. Omitted: the encoder's output itself, and the sum of its gradients.
  TensorId cross(BlockBuilder& b, TensorId input) const {
    if (!sort.crosses) return input;
    b.begin_names("cross_");
    Model seen = model;
    seen.bidirectional = true;
    const TensorId rows =
        model.norms_before() ? normalise(b, "norm", model.norm, input, model.hidden) : input;
    const Branch attended = attention(b, seen, plan, b.shape(), rows);
    const TensorId sum = normalise_sum(
        b, model, "sum_norm",
        add_residual(b, {"residual", input, attended.output, attended.bias, model.dropout}, "attended_rows"));
    b.begin_names("");
    return sum;
  }

  // The sum with a state space's output for the rows that attention reads.
  TensorId add_scanned(BlockBuilder& b, TensorId rows, TensorId input) const {
    b.enter(LayerPart::mamba);
    const Branch scanned = mamba(b, model, b.shape(), rows);
    const TensorId sum = add_residual(
        b, {"mamba_residual", input, scanned.output, scanned.bias, model.dropout}, "scanned_sum");
    b.enter(LayerPart::attention);
    return sum;
  }

  TensorId scan(BlockBuilder& b, TensorId input) const {
    b.enter(LayerPart::mamba);
    const TensorId rows = normalise_layer(b, model, plan, "mamba_input_norm", input, fuses);
    const Branch scanned =
        model.state_space ? mamba(b, model, b.shape(), rows) : recurrence(b, model, plan, b.shape(), rows);
    return add_residual(b, {"mamba_residual", input, scanned.output, scanned.bias, model.dropout},
                        "mamba_output");
  }

  // The rows of `input` that an MLP, or experts, read.
  TensorId before_mlp(BlockBuilder& b, TensorId input) const {
    b.enter(sort.sparse ? LayerPart::router : LayerPart::mlp);
    if (!model.norms_before()) return input;
    if (model.depth_block > 0) input = sum_depths(b, model, "mlp_depth", input);
    return normalise_layer(b, model, plan, "mlp_norm", input, fuses && !sort.sparse);
  }

  Branch mix(BlockBuilder& b, TensorId rows, TensorId input) const {
    if (!sort.sparse) return feed_forward(b, model, b.shape(), {"mlp", b.shape().ffn, model.mlp_bias}, rows);
    return model.experts->own_norms ? experts_with_norms(b, model, plan, b.shape(), rows, input)
                                    : experts(b, model, plan, b.shape(), rows);
  }

  TensorId transform(BlockBuilder& b, TensorId rows, TensorId input) const {
    b.enter(sort.sparse ? LayerPart::router : LayerPart::mlp);
    const std::size_t first = b.forward_kernels();
    const Branch transformed = mix(b, rows, input);
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
  LayerSort sort{model.type_of(layer), model.is_sparse(layer), model.window_of(layer) == 0, at_an_end};
  sort.recurs = model.recurs(layer);
  sort.scores_keys = model.scores_keys(layer);
  sort.rotates = model.rotates(layer);
  sort.shape = model.shape_of(layer);
  sort.encodes = model.encodes(layer);
  sort.crosses = model.encoder_layers > 0 && !sort.encodes;
  sort.ends_encoder = layer + 1 == model.encoder_layers;
  return sort;
}

TensorId layer(BlockBuilder& b, const Model& model, const Plan& plan, LayerSort sort, TensorId input) {
  const Shape& shape = b.shape();
  const bool fuses = shape.quantized && shape.fused_norm && traits(plan).fp8 != Fp8Library::torchao;
  const Part part{model, plan, sort, fuses};
  if (model.streams > 1) return stream_layer(b, model, plan, sort, input);
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
  TensorId middle = part.cross(b, part.attend(b, rows, input, "middle"));
  if (model.laurel_rank > 0) middle = add_laurel(b, model, rows, middle);
  if (model.norm_place == NormPlace::shared) return part.transform(b, rows, middle);
  TensorId output = part.transform(b, part.before_mlp(b, model.parallel_residual ? input : middle), middle);
  if (model.alternating > 1) output = alternate(b, model, output);
  if (model.per_layer_width > 0) output = add_per_layer(b, model, output);
  const bool norms = sort.ends_encoder && model.norm_place != NormPlace::after_sum;
  return norms ? normalise(b, "encoder_norm", model.norm, output, model.hidden) : output;
}

Block layer_block(const Model& all, const Plan& plan, LayerSort sort, LayerKind kind) {
  const Model model = all.shaped(sort.shape);
  const Shape shape = sort.in_bf16 ? in_bf16(shape_on_one_rank(model, plan)) : shape_on_one_rank(model, plan);
  BlockBuilder b(name_of(all, sort, kind), shape, BlockRole::layer);
  b.hands_on(layer(b, model, plan, sort,
                   b.input("input", static_cast<double>(model.streams) * shape.row_elements())));

  if (plan.recompute == Recompute::full && kind != LayerKind::kept) {
    b.rerun_from(0);
    const bool alone = plan.recompute_method == RecomputeMethod::block || plan.recompute_layers == 1;
    if (plan.recompute_early_stop && alone) b.stop_rerun_early();
  }
  if (plan.recompute == Recompute::op) b.rerun_by_op();
  return b.finish(kind == LayerKind::joined);
}

}  // namespace rehearse
