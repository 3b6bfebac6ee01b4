#include "plan/field_rows.h"

namespace rehearse {

namespace {

bool in_fp8(const Plan& plan, const Model&) {
  return plan.precision == Precision::fp8;
}
bool casts(const Plan& plan, const Model&) {
  return is_quantized(plan.precision);
}
bool has_scores(const Plan& plan, const Model&) {
  return !plan.fused_attention;
}
bool splits_layers(const Plan& plan, const Model&) {
  return plan.pp > 1;
}
bool has_graphs(const Plan& plan, const Model&) {
  return plan.cuda_graph;
}
bool has_buckets(const Plan& plan, const Model& model) {
  return plan.zero > 0 || plan.dp * plan.cp > 1 || (model.experts && plan.edp() > 1);
}

std::vector<PlanField> numerics() {
  using enum HelpGroup;
  return {
      {{"recipe",
        "--recipe",
        {},
        precision,
        false,
        "",
        "bytes a parameter: megatron 18, zero 16, sagemaker 20, deepspeed-bf16 20, nanotron 20, fsdp 16, "
        "autocast 18, bf16 8, fp8-weights by its parts"},
       choice<&Plan::recipe, kRecipes>(),
       always},
      {{"precision", "--precision", {}, precision, true, "", "of the GEMMs"},
       choice<&Plan::precision, kPrecisions>(),
       always},
      {{"fp8_weight_copies",
        "--fp8-weight-copies",
        {},
        precision,
        false,
        "1|2",
        "fp8 weights held once (Blackwell, scaled by tensor), or by rows and by columns",
        "the GPU's"},
       IntegerField{&Plan::fp8_weight_copies, 1, 2},
       in_fp8},
      {{"fp8_scaling",
        "--fp8-scaling",
        {},
        precision,
        false,
        "",
        "scales of fp8 operands: Megatron core tensor, current, mx; torchtitan tensor, tensor-gathered, row"},
       choice<&Plan::fp8_scaling, kFp8Scalings>(),
       in_fp8},
  };
}

PlanField fusion(const char* key, const char* flag, const char* help, bool Plan::*member,
                 bool (*matters)(const Plan&, const Model&) = always, HelpGroup group = HelpGroup::kernels) {
  return {{key, flag, {}, group, false, "", help}, SwitchField{member}, matters};
}

std::vector<PlanField> fusions() {
  using enum HelpGroup;
  return {
      {{"sequence_parallel",
        "--sequence-parallel",
        {},
        parallelism,
        false,
        "",
        "split norms and dropout over tp too",
        "on where tp > 1, for most frameworks"},
       SwitchField{&Plan::sequence_parallel},
       splits_tensors},
      {{"fused_attention", "--fused-attention", {}, kernels, false, "", "FlashAttention"},
       SwitchField{&Plan::fused_attention},
       always},
      fusion("fused_softmax", "--masked-softmax-fusion",
             "without FlashAttention: scale, mask and softmax in one kernel", &Plan::fused_softmax,
             has_scores),
      fusion("fused_cross_entropy", "--cross-entropy-loss-fusion", "few passes over the logits for the loss",
             &Plan::fused_cross_entropy),
      {{"cross_entropy_fusion_impl",
        "--cross-entropy-fusion-impl",
        {},
        kernels,
        false,
        "",
        "whose fused loss: Megatron core's, Transformer Engine's, or that before 2.18"},
       choice<&Plan::loss_fusion, kLossFusions>(),
       always},
      {{"train_metrics",
        "--train-metrics",
        {},
        kernels,
        false,
        "N",
        "metrics of the loss that Composer computes"},
       IntegerField{&Plan::train_metrics, 0, 100},
       always},
      fusion("fused_norm", "--norm-fusion", "RMSNorm in one kernel", &Plan::fused_norm),
      fusion("fused_rotary", "--rope-fusion", "rotary positions in one kernel", &Plan::fused_rotary),
      fusion("fused_activation", "--swiglu-fusion", "gated activation or squared ReLU in one kernel",
             &Plan::fused_activation),
      fusion("fused_permute", "--moe-permute-fusion",
             "token permutation in one kernel, not index_select and scatter_add_", &Plan::fused_permute,
             has_experts, experts),
      fusion("fused_router", "--moe-router-fusion", "router and its balancing loss in one kernel",
             &Plan::fused_router, has_experts, experts),
      fusion("fused_experts", "--experts-fusion",
             "activation and cast inside the experts' GEMMs (Transformer Engine, MXFP8 on Blackwell)",
             &Plan::fused_experts, has_experts, experts),
      fusion("fp8_output_proj", "--fp8-output-proj", "logits in fp8, as the layers", &Plan::fp8_output_proj,
             in_fp8, precision),
      {{"bf16_first_layers",
        "--num-layers-at-start-in-bf16",
        {"--bf16-first-layers"},
        precision,
        false,
        "N",
        "first layers that stay in bf16 under fp8 or fp4"},
       IntegerField{&Plan::bf16_first_layers, 0, bounds::kLayers},
       casts},
      {{"bf16_last_layers",
        "--num-layers-at-end-in-bf16",
        {"--bf16-last-layers"},
        precision,
        false,
        "N",
        "last layers that stay in bf16 under fp8 or fp4"},
       IntegerField{&Plan::bf16_last_layers, 0, bounds::kLayers},
       casts},
      fusion("fp8_dot_product_attention", "--fp8-dot-product-attention", "attention in fp8, as the layers",
             &Plan::fp8_attention, casts, precision),
      fusion("fused_accumulation", "--gradient-accumulation-fusion",
             "weight-gradient GEMMs add to earlier microbatches' gradients", &Plan::fused_accumulation),
      fusion("fused_adam", "--adam-fusion", "Adam in one kernel (PyTorch: fused=True)", &Plan::fused_adam),
      fusion("fused_step", "--step-fusion", "Adam's kernel copies, unscales and clips gradients too",
             &Plan::fused_step),
  };
}

std::vector<PlanField> overlaps_and_launches() {
  using enum HelpGroup;
  return {
      {{"overlap_grad_reduce",
        "--overlap-grad-reduce",
        {},
        overlap,
        true,
        "",
        "reduce gradients during the backward pass"},
       SwitchField{&Plan::overlap_grad_reduce},
       always},
      {{"overlap_p2p",
        "--overlap-p2p",
        {},
        overlap,
        false,
        "",
        "pipeline messages beside compute",
        "on for all schedules but gpipe and 1f1b"},
       SwitchField{&Plan::overlap_p2p},
       splits_layers},
      {{"scatter_gather",
        "--scatter-gather",
        {"--scatter-gather-tensors-in-pipeline"},
        overlap,
        false,
        "",
        "each tensor-parallel rank sends its part to the next stage, which gathers them"},
       SwitchField{&Plan::scatter_gather},
       splits_layers},
      {{"overlap_experts",
        "--overlap-experts",
        {"--overlap-moe-expert-parallel-comm"},
        experts,
        true,
        "",
        "dispatch and combine beside another microbatch's pass"},
       SwitchField{&Plan::overlap_experts},
       has_experts},
      {{"cuda_graph",
        "--cuda-graph",
        {"--enable-cuda-graph"},
        kernels,
        true,
        "",
        "launch passes as CUDA graphs",
        "off; on with --cuda-graph-modules"},
       SwitchField{&Plan::cuda_graph},
       always},
      {{"cuda_graph_modules",
        "--cuda-graph-modules",
        {"--cuda-graph-scope"},
        kernels,
        false,
        "LIST",
        "CUDA graphs of these modules of a layer alone",
        "whole passes"},
       choices<&Plan::cuda_graph_modules, kGraphModules>("is no module that CUDA graphs know"),
       has_graphs},
      {{"one_queue", "--one-queue", {}, overlap, false, "", "one CUDA queue: ops run in launch order"},
       SwitchField{&Plan::one_queue},
       always},
      {{"launch_blocking",
        "--launch-blocking",
        {},
        overlap,
        false,
        "",
        "CUDA_LAUNCH_BLOCKING=1: the host waits for each kernel"},
       SwitchField{&Plan::launch_blocking},
       always},
      {{"bucket", "--bucket", {}, overlap, false, "BYTES", "gradient bucket"},
       BytesField{&Plan::bucket_bytes},
       has_buckets},
  };
}

}  // namespace

std::vector<PlanField> fields_of_kernels() {
  std::vector<PlanField> all = numerics();
  for (const auto& group : {fusions, overlaps_and_launches})
    std::ranges::move(group(), std::back_inserter(all));
  return all;
}

}  // namespace rehearse
