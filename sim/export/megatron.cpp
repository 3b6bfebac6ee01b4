#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "export/hybrid_flags.h"
#include "export/launch_lines.h"
#include "export/megatron_parts.h"
#include "export/unsaid.h"
#include "plan/frameworks/traits.h"

namespace rehearse {

namespace {

constexpr std::array kOrder = {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};
constexpr std::array kPipelineFirst = {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp};

class Line {
 public:
  void flag(const char* name) { text_ += fmt::format("{}--{}", text_.empty() ? "" : " ", name); }
  template <typename Value>
  void flag(const char* name, const Value& value) {
    flag(name);
    text_ += fmt::format(" {}", value);
  }
  void flag_if(bool wanted, const char* name) {
    if (wanted) flag(name);
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

// Megatron-LM's schedules, and those of sail-sg's zero-bubble fork.
constexpr std::array kSchedules = {ScheduleName::one_f_one_b, ScheduleName::interleaved, ScheduleName::zb_h1,
                                   ScheduleName::zb_h2,       ScheduleName::zb_v,        ScheduleName::v_half,
                                   ScheduleName::v_min};

std::string why_not(const Plan& plan) {
  if (std::ranges::find(kSchedules, plan.schedule) == kSchedules.end())
    return fmt::format("Megatron-LM has no schedule {}", to_string(plan.schedule));
  if (plan.vpp > 1 && plan.pp == 1) return "Megatron-LM has model chunks only with pipeline parallelism";
  if (plan.order != kOrder && plan.order != kPipelineFirst)
    return "Megatron-LM orders ranks tp-cp-ep-dp-pp or tp-cp-ep-pp-dp";
  if (plan.recompute == Recompute::op) return "Megatron-LM recomputes by module, not by op";
  if (plan.tp_comm_proj_sms > 0 || plan.tp_comm_fc2_sms > 0)
    return "Megatron-LM reads the SMs of user buffers from a file (--tp-comm-overlap-cfg)";
  if (plan.zero >= 2 && plan.pp > 1) return "Megatron-LM shards no gradients under pipeline parallelism";
  return "";
}

// Biases on every GEMM, and a special gated activation with the cost of others. A model states only whether
// there are limits; their values are those of the models of OpenAI 2025 (swiglu_limit).
bool is_gpt_oss(const Model& model) {
  return model.experts && model.experts->linear_bias;
}

void add_activation_of_gpt_oss(Line& line, const Experts& experts) {
  line.flag("quick-geglu");
  line.flag("glu-linear-offset", 1.0);
  if (experts.clamped) line.flag("activation-func-clamp-value", 7.0);
}

// "[1,0]" of "10".
std::string as_list(const std::string& layers) {
  return fmt::format("[{}]", fmt::join(layers, ","));
}

void add_model(Line& line, const Model& model) {
  line.flag("vocab-size", model.vocab);
  line.flag("make-vocab-size-divisible-by", 1);
  if (model.pattern.empty()) line.flag("num-layers", model.layers);
  line.flag("hidden-size", model.hidden);
  line.flag("ffn-hidden-size", model.ffn_hidden);
  line.flag("num-attention-heads", model.heads);
  if (model.kv_heads != model.heads) {
    line.flag("group-query-attention");
    line.flag("num-query-groups", model.kv_heads);
  }
  if (!model.latent && model.head_dim * model.heads != model.hidden) line.flag("kv-channels", model.head_dim);
  line.flag("normalization", model.norm == Norm::rms ? "RMSNorm" : "LayerNorm");
  if (model.positions == Positions::rotary) line.flag("position-embedding-type", "rope");
  if (model.positions == Positions::none) line.flag("position-embedding-type", "none");
  line.flag_if(model.gated_mlp && !is_gpt_oss(model), "swiglu");
  line.flag_if(model.squared_relu, "squared-relu");
  line.flag_if(!model.tied_embeddings, "untie-embeddings-and-output-weights");
  const bool has_biases = model.mlp_bias || is_gpt_oss(model);
  line.flag_if(!has_biases, "disable-bias-linear");
  line.flag_if(model.qkv_bias && !has_biases, "add-qkv-bias");
  line.flag_if(model.qk_norm, "qk-layernorm");
  // Number of keys that a query sees before its own, and 0 after it.
  if (model.window > 0) line.flag("window-size", fmt::format("{},0", model.window - 1));
  if (!model.windows.empty()) line.flag("window-attn-skip-freq", as_list(model.windows));
  if (model.full_every > 0) line.flag("window-attn-skip-freq", model.full_every);
  if (model.attention_sinks) line.flag("softmax-type", "learnable");
  if (is_gpt_oss(model)) add_activation_of_gpt_oss(line, *model.experts);
  if (model.mtp_layers > 0 && model.pattern.empty()) line.flag("mtp-num-layers", model.mtp_layers);
  const double dropout = model.dropout ? 0.1 : 0;
  line.flag("attention-dropout", dropout);
  line.flag("hidden-dropout", dropout);
}

void add_hybrid(Line& line, const Model& model, const Plan& plan) {
  line.flag("spec", "megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec");
  // Python's argparse takes a value that begins with a dash for a flag, unless it follows an equals sign.
  const std::string pattern = hybrid_layer_pattern(model, plan);
  if (pattern.starts_with('-'))
    line.flag(fmt::format("hybrid-layer-pattern=\"{}\"", pattern).c_str());
  else
    line.flag("hybrid-layer-pattern", fmt::format("\"{}\"", pattern));
  line.flag_if(model.mtp_repeated, "mtp-use-repeated-layer");
  if (!model.state_space) return;
  line.flag("mamba-num-heads", model.state_space->heads);
  line.flag("mamba-head-dim", model.state_space->head_dim);
  line.flag("mamba-num-groups", model.state_space->groups);
  line.flag("mamba-state-dim", model.state_space->state);
}

void add_latent(Line& line, const LatentAttention& latent) {
  line.flag("multi-latent-attention");
  if (latent.q_rank > 0) line.flag("q-lora-rank", latent.q_rank);
  line.flag("kv-lora-rank", latent.kv_rank);
  line.flag("qk-head-dim", latent.nope_head_dim);
  line.flag("qk-pos-emb-head-dim", latent.rope_head_dim);
  line.flag("v-head-dim", latent.v_head_dim);
}

// One entry a layer: 1 where it has experts.
std::string sparse_layers(const Model& model) {
  std::string layers;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) layers += model.is_sparse(layer) ? '1' : '0';
  return as_list(layers);
}

void add_experts(Line& line, const Model& model, const Plan& plan) {
  const Experts& experts = *model.experts;
  line.flag("num-experts", experts.count);
  line.flag("moe-router-topk", experts.per_token);
  line.flag("moe-ffn-hidden-size", experts.ffn_hidden);
  if (experts.shared_ffn_hidden > 0)
    line.flag("moe-shared-expert-intermediate-size", experts.shared_ffn_hidden);
  if (experts.latent > 0) line.flag("moe-latent-size", experts.latent);
  if (!experts.in_all_layers()) line.flag("moe-layer-freq", sparse_layers(model));
  line.flag_if(experts.shared_gate, "moe-shared-expert-gate");
  line.flag_if(experts.router_bias, "moe-router-enable-expert-bias");
  const bool by_library = plan.sends_rows_once();
  line.flag("moe-token-dispatcher-type", by_library ? "flex" : "alltoall");
  if (by_library) line.flag("moe-flex-dispatcher-backend", to_string(plan.dispatcher));
  if (by_library && plan.dispatcher_sms > 0) line.flag("moe-flex-dispatcher-num-sms", plan.dispatcher_sms);
  line.flag("moe-grouped-gemm");
  line.flag_if(plan.fused_permute, "moe-permute-fusion");
  line.flag_if(plan.fused_router, "moe-router-fusion");
  if (plan.fused_experts) {
    line.flag("use-transformer-engine-op-fuser");
    line.flag("moe-mlp-glu-interleave-size", 32);
  }
  line.flag("expert-model-parallel-size", plan.ep);
  line.flag("expert-tensor-parallel-size", plan.etp);
  line.flag_if(plan.overlap_experts, "overlap-moe-expert-parallel-comm");
  if (plan.moe_capacity > 0) line.flag("moe-expert-capacity-factor", plan.moe_capacity);
}

std::string layout(const Model& model, const Plan& plan) {
  std::string stages;
  for (std::size_t s = 0; s < plan.layers_per_stage.size(); ++s) {
    if (s > 0) stages += '|';
    if (s == 0) stages += 'E';
    const int layers = plan.layers_per_stage[s];
    if (layers > 0) stages += layers > 1 ? fmt::format("t*{}", layers) : "t";
  }
  const std::string modules(static_cast<std::size_t>(model.mtp_layers), 'm');
  return fmt::format("\"{}{}L\"", stages, modules);
}

void add_schedule(Line& line, const Model& model, const Plan& plan) {
  switch (plan.schedule) {
    case ScheduleName::interleaved:
      if (plan.vpp == 1) return;
      if (plan.layers_per_stage.empty() && model.pattern.empty())
        line.flag("num-virtual-stages-per-pipeline-rank", plan.vpp);
      if (plan.microbatch_group > 0)
        line.flag("microbatch-group-size-per-virtual-pipeline-stage", plan.microbatch_group);
      return line.flag_if(!plan.overlap_p2p, "no-overlap-p2p-communication");
    case ScheduleName::zb_h1:
    case ScheduleName::zb_h2:
      line.flag("enable-zero-bubble");
      return line.flag("zero-bubble-max-pending-backward",
                       plan.schedule == ScheduleName::zb_h1 ? plan.pp : 2 * plan.pp);
    case ScheduleName::zb_v:
      return line.flag("zero-bubble-v-schedule");
    case ScheduleName::v_half:
    case ScheduleName::v_min:
      line.flag("zero-bubble-v-schedule");
      return line.flag("zero-bubble-v-schedule-mem-setup",
                       plan.schedule == ScheduleName::v_half ? "half" : "min");
    default:
      return;
  }
}

void add_degrees(Line& line, const Model& model, const Plan& plan) {
  line.flag("tensor-model-parallel-size", plan.tp);
  line.flag("pipeline-model-parallel-size", plan.pp);
  if (plan.cp > 1) {
    line.flag("context-parallel-size", plan.cp);
    const bool gathers = plan.cp_exchange == ContextExchange::gather;
    line.flag("cp-comm-type", gathers ? "all_gather" : to_string(plan.cp_exchange));
  }
  line.flag_if(plan.sequence_parallel && plan.tp > 1, "sequence-parallel");
  line.flag_if(plan.tp_comm_overlap, "tp-comm-overlap");
  line.flag_if(plan.order == kPipelineFirst, "use-tp-pp-dp-mapping");
  add_schedule(line, model, plan);
  if (!plan.layers_per_stage.empty() && model.pattern.empty())
    line.flag("pipeline-model-parallel-layout", layout(model, plan));
}

// In the type of the parameters, as fp16 training does by default; in bf16 where gradients are reduced in
// bf16 (megatron/training/arguments.py, accumulate_allreduce_grads_in_fp32).
bool keeps_narrow_gradients(const Plan& plan) {
  if (plan.precision == Precision::fp32 || plan.recipe == Recipe::fp8_weights) return false;
  return plan.grad_reduce == Precision::bf16 ||
         (plan.precision == Precision::fp16 && plan.recipe == Recipe::sagemaker);
}

// Bytes of a bucket's element in the precision of the gradient reduction.
int bucket_width(const Plan& plan) {
  return plan.grad_reduce == Precision::bf16 || keeps_narrow_gradients(plan) ? 2 : 4;
}

// Whole elements; 0 for Megatron-LM's default, or for less than one.
std::int64_t bucket_elements(const Plan& plan) {
  if (plan.bucket_bytes == Plan{}.bucket_bytes) return 0;
  return static_cast<std::int64_t>(plan.bucket_bytes / bucket_width(plan));
}

// Megatron-FSDP gathers parameters ahead of their layers only where it is told so.
bool gathers_ahead(const Plan& plan) {
  return plan.zero == 3 && plan.prefetch > 0;
}

void add_sharding(Line& line, const Model& model, const Plan& plan) {
  line.flag_if(plan.zero == 1, "use-distributed-optimizer");
  if (plan.zero >= 2) {
    line.flag("use-megatron-fsdp");
    line.flag("data-parallel-sharding-strategy", plan.zero == 2 ? "optim_grads" : "optim_grads_params");
  }
  if (plan.zero_shard > 0)
    line.flag("num-distributed-optimizer-instances", plan.dp * plan.cp / plan.zero_shard);
  if (bucket_elements(plan) > 0) line.flag("ddp-bucket-size", bucket_elements(plan));
  if (!plan.fused_attention) line.flag("attention-backend", "unfused");
  line.flag_if(plan.fused_cross_entropy, "cross-entropy-loss-fusion");
  if (plan.loss_fusion != LossFusion::native) line.flag("cross-entropy-fusion-impl", "te");
  line.flag_if(!plan.fused_softmax, "no-masked-softmax-fusion");
  const bool scales = model.yarn && traits(plan).rope_fusion_lacks_yarn;  // no fused kernel supports it
  line.flag_if(!plan.fused_rotary || scales, "no-rope-fusion");
  line.flag_if(!plan.fused_activation, "no-bias-swiglu-fusion");
  line.flag_if(!plan.fused_accumulation, "no-gradient-accumulation-fusion");
  line.flag_if(plan.overlap_grad_reduce, "overlap-grad-reduce");
  line.flag_if(plan.overlap_param_gather || gathers_ahead(plan), "overlap-param-gather");
  line.flag_if(plan.grad_reduce == Precision::bf16, "grad-reduce-in-bf16");
  line.flag_if(plan.offload == Offload::optimizer, "optimizer-cpu-offload");
}

void add_recompute(Line& line, const Plan& plan) {
  if (plan.recompute == Recompute::none) return;
  line.flag("recompute-granularity", to_string(plan.recompute));
  if (plan.recompute == Recompute::full) {
    line.flag("recompute-method", to_string(plan.recompute_method));
    return line.flag("recompute-num-layers", plan.recompute_layers);
  }
  std::vector<std::string> modules;
  for (const RecomputeModule module : plan.recompute_modules) modules.push_back(to_string(module));
  line.flag("recompute-modules", join(modules, " "));
}

// A graph of whole passes does not check the loss (megatron/training/arguments.py).
void add_graphs(Line& line, const Plan& plan) {
  if (!plan.cuda_graph) return;
  line.flag("te-rng-tracker");
  if (plan.cuda_graph_modules.empty()) {
    line.flag("cuda-graph-impl", "full_iteration");
    return line.flag("no-check-for-nan-in-loss-and-grad");
  }
  std::vector<std::string> modules;
  for (const GraphModule module : plan.cuda_graph_modules) modules.push_back(to_string(module));
  line.flag("cuda-graph-impl", "transformer_engine");
  line.flag("cuda-graph-modules", join(modules, " "));
}

void add_precision(Line& line, const Plan& plan) {
  if (plan.precision == Precision::fp32) return;
  line.flag(plan.precision == Precision::fp16 ? "fp16" : "bf16");
  line.flag_if(plan.precision == Precision::fp16 && !keeps_narrow_gradients(plan),
               "accumulate-allreduce-grads-in-fp32");
  line.flag_if(plan.fp8_attention, "fp8-dot-product-attention");
  if (plan.precision == Precision::fp4) {
    line.flag("fp4-format", "e2m1");
    line.flag("fp4-recipe", "nvfp4");
  }
  if (plan.bf16_first_layers + plan.bf16_last_layers > 0) {
    line.flag("first-last-layers-bf16");
    line.flag("num-layers-at-start-in-bf16", plan.bf16_first_layers);
    line.flag("num-layers-at-end-in-bf16", plan.bf16_last_layers);
  }
  if (plan.precision != Precision::fp8) return;
  const bool in_blocks = plan.fp8_scaling == Fp8Scaling::mx;
  line.flag("fp8-format", in_blocks ? "e4m3" : "hybrid");  // docs/discussions/deepseek-v3-gb200-optimization
  if (plan.fp8_scaling == Fp8Scaling::current) line.flag("fp8-recipe", "tensorwise");
  line.flag_if(plan.fp8_output_proj, "fp8-output-proj");
  if (in_blocks) line.flag("fp8-recipe", "mxfp8");
  if (plan.recipe != Recipe::fp8_weights) return;
  line.flag("fp8-param-gather");
  line.flag_if(in_blocks && plan.overlap_param_gather, "reuse-grad-buf-for-mxfp8-param-ag");
}

Plan said_of(const Model& model, const Plan& plan) {
  Plan said = untold(model, plan, Framework::megatron_core);
  said.seq = plan.seq;
  said.order = plan.order;
  said.layers_per_stage = plan.layers_per_stage;
  said.microbatch_group = plan.microbatch_group;
  if (plan.vpp > 1 && plan.schedule == ScheduleName::interleaved) said.overlap_p2p = plan.overlap_p2p;
  said.recompute = plan.recompute;
  said.recompute_method = plan.recompute_method;
  said.recompute_layers = plan.recompute_layers;
  said.recompute_modules = plan.recompute_modules;
  if (plan.recipe == Recipe::fp8_weights) said.recipe = plan.recipe;
  if (plan.fp8_scaling == Fp8Scaling::current || plan.fp8_scaling == Fp8Scaling::mx)
    said.fp8_scaling = plan.fp8_scaling;
  if (plan.loss_fusion != LossFusion::native) said.loss_fusion = LossFusion::te;
  said.cp_exchange = plan.cp_exchange;
  said.dispatcher = plan.dispatcher;
  said.dispatcher_sms = plan.dispatcher_sms;
  if (plan.zero == 3) said.prefetch = gathers_ahead(plan) ? 1 : 0;
  if (keeps_narrow_gradients(plan)) {
    said.recipe = Recipe::sagemaker;
    said.grad_reduce = plan.grad_reduce == Precision::bf16 ? Precision::bf16 : Precision::fp16;
  }
  for (bool Plan::*field : std::initializer_list<bool Plan::*>{
           &Plan::sequence_parallel, &Plan::tp_comm_overlap, &Plan::fused_attention, &Plan::fused_softmax,
           &Plan::fused_cross_entropy, &Plan::fused_rotary, &Plan::fused_activation,
           &Plan::fused_accumulation, &Plan::fused_permute, &Plan::fused_router, &Plan::fused_experts,
           &Plan::fp8_output_proj, &Plan::fp8_attention, &Plan::overlap_experts, &Plan::cuda_graph,
           &Plan::overlap_grad_reduce, &Plan::overlap_param_gather})
    said.*field = plan.*field;
  said.cuda_graph_modules = plan.cuda_graph_modules;
  said.etp = plan.etp;
  said.bf16_first_layers = plan.bf16_first_layers;
  said.bf16_last_layers = plan.bf16_last_layers;
  said.moe_capacity = plan.moe_capacity;
  if (bucket_elements(plan) > 0)
    said.bucket_bytes = static_cast<double>(bucket_elements(plan)) * bucket_width(plan);
  if (plan.grad_reduce == Precision::bf16) said.grad_reduce = plan.grad_reduce;
  if (plan.offload == Offload::optimizer) said.offload = plan.offload;
  return said;
}

}  // namespace

LaunchLine megatron_flags(const Model& model, const Plan& plan) {
  const std::string reason = why_not(plan);
  if (!reason.empty()) return {"", reason, {}};
  Line line;
  add_model(line, model);
  if (model.latent) add_latent(line, *model.latent);
  if (!model.pattern.empty()) add_hybrid(line, model, plan);
  if (model.experts) add_experts(line, model, plan);
  line.flag("seq-length", plan.seq);
  line.flag("max-position-embeddings", std::max(plan.seq, model.max_positions));
  line.flag("micro-batch-size", plan.micro_batch);
  line.flag("global-batch-size", plan.global_batch);
  add_degrees(line, model, plan);
  add_sharding(line, model, plan);
  line.flag("clip-grad", plan.clip_grad);
  add_recompute(line, plan);
  add_precision(line, plan);
  add_graphs(line, plan);
  LaunchLine launch{std::move(line).text(), "", unsaid(model, plan, said_of(model, plan))};
  for (const char* part : without_flag(model)) launch.unsaid.emplace_back(part);
  const StateSpace told;
  if (model.state_space &&
      (model.state_space->chunk != told.chunk || model.state_space->convolution != told.convolution))
    launch.unsaid.emplace_back("chunk_size");
  return launch;
}

}  // namespace rehearse
