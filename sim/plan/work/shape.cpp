#include "plan/work/shape.h"

#include "plan/frameworks/traits.h"
#include "plan/recipe.h"
#include "plan/work.h"

namespace rehearse {

namespace {

std::int64_t divide_up(std::int64_t value, std::int64_t parts) {
  return (value + parts - 1) / parts;
}

bool fuses_softmax(const Plan& plan, const Shape& shape) {
  constexpr std::int64_t kMatricesOfABlock = 4, kRowsOfABlock = 4, kFewestKeys = 16, kMaxKeys = 2048;
  return plan.precision != Precision::fp32 && shape.batch * shape.heads % kMatricesOfABlock == 0 &&
         shape.seq % kRowsOfABlock == 0 && shape.seq > kFewestKeys && shape.seq <= kMaxKeys;
}

void scale(const Plan& plan, Shape& shape) {
  shape.transposes_kept = traits(plan).fp8 == Fp8Library::torchao;
  const bool is_fp4 = plan.precision == Precision::fp4;
  shape.dynamic_scaling = shape.transposes_kept || is_fp4 || plan.fp8_scaling == Fp8Scaling::current;
  shape.scaled_by_row = plan.fp8_scaling == Fp8Scaling::row;
  shape.scaled_by_block = is_fp4 || plan.fp8_scaling == Fp8Scaling::mx;
  shape.either_layout = plan.fp8_either_layout && !shape.transposes_kept && !shape.scaled_by_block;
}

}  // namespace

Shape shape_on_one_rank(const Model& model, const Plan& plan) {
  const FrameworkTraits& framework = traits(plan);
  Shape shape;
  shape.tp = plan.tp;
  shape.sequence_parallel = plan.sequence_parallel && plan.tp > 1;
  // PyTorch's DTensor and Scaling keep the gathered inputs of the forward pass; Megatron-LM's autograd
  // function does not.
  shape.gathers_again = !framework.keeps_gathered;
  shape.batch_first = framework.dtensor && shape.sequence_parallel;
  scale(plan, shape);
  shape.fused_norm = plan.fused_norm;
  shape.expands_biases =
      framework.expands_biases && plan.recipe == Recipe::autocast && plan.precision != Precision::fp32;
  shape.wide_norms = framework.wide_norms && plan.precision != Precision::fp32;
  shape.packs_heads = framework.packs_heads && plan.fused_attention && plan.cp == 1;
  shape.fused_rotary = plan.fused_rotary && !(model.yarn && framework.rope_fusion_lacks_yarn);
  shape.fused_activation = plan.fused_activation;
  shape.cp = plan.cp;
  shape.cp_exchange = plan.cp_exchange;
  shape.tp_comm_overlap = plan.tp_comm_overlap && shape.sequence_parallel;
  shape.symmetric_memory = shape.tp_comm_overlap && framework.dtensor;
  shape.fused_accumulation = plan.fused_accumulation;
  shape.tp_comm_proj_sms = plan.tp_comm_proj_sms;
  shape.tp_comm_fc2_sms = plan.tp_comm_fc2_sms;
  shape.tp_backward_overlap = plan.tp_backward_overlap;
  shape.seq = plan.seq / plan.cp;
  shape.batch = plan.micro_batch;
  shape.tokens = shape.seq * shape.batch;
  shape.rows = shape.sequence_parallel ? shape.tokens / shape.tp : shape.tokens;
  shape.hidden = model.hidden;
  shape.latent = model.experts && model.experts->latent > 0 ? model.experts->latent : model.hidden;
  shape.heads = model.heads / shape.tp;
  shape.kv_heads = divide_up(model.kv_heads, shape.tp);
  shape.head_dim = model.head_dim;
  shape.rearranges_heads = framework.rearranges_heads;
  shape.splits_heads = framework.splits_heads && plan.fused_attention && model.positions == Positions::rotary;
  shape.repeats_heads =
      framework.repeats_heads && plan.fused_attention && !model.latent && shape.heads != shape.kv_heads;
  shape.fused_softmax = plan.fused_softmax && !model.attention_sinks &&
                        (!framework.softmax_of_2021 || fuses_softmax(plan, shape));
  shape.splits_qkv = framework.splits_qkv;
  shape.rotates_halves = !framework.dtensor;
  shape.keeps_views = framework.keeps_views;
  shape.splits_gate = framework.splits_gate;
  shape.ffn = model.ffn_hidden / shape.tp;
  shape.vocab = divide_up(model.vocab, shape.tp);
  shape.quantized = is_quantized(plan.precision);
  shape.fp4 = plan.precision == Precision::fp4;
  shape.fp8_attention = plan.fp8_attention;
  if (shape.fp4) shape.operand_bytes = kFp4Bytes;
  shape.element_bytes = plan.precision == Precision::fp32 ? 4 : 2;
  const StateBytes state = state_bytes(plan);
  shape.gradient_bytes = state.fresh_gradient > 0 ? state.fresh_gradient : state.gradient;
  return shape;
}

Shape in_bf16(Shape shape) {
  shape.quantized = shape.fp4 = shape.dynamic_scaling = shape.scaled_by_block = shape.scaled_by_row = false;
  shape.fp8_attention = false;
  return shape;
}

}  // namespace rehearse
