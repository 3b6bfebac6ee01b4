#include "coverage.h"

#include <fmt/core.h>

#include <algorithm>

namespace rehearse::properties {

namespace {

class Listing {
 public:
  explicit Listing(std::set<std::string>& features) : features_(features) {}
  void operator()(const std::string& name, bool has) {
    if (has) features_.insert(name);
  }

 private:
  std::set<std::string>& features_;
};

void add_degrees(Listing& has, const Plan& plan) {
  has("tp", plan.tp > 1);
  has("pp", plan.pp > 1);
  has("vpp", plan.vpp > 1);
  has("dp", plan.dp > 1);
  has("ep", plan.ep > 1);
  has("etp", plan.etp > 1);
  has("etp<tp", plan.etp < plan.tp && plan.ep > 1);
  has("cp=" + to_string(plan.cp_exchange), plan.cp > 1);
  has("one GPU", plan.gpus() == 1);
  has("other rank order", plan.order != Plan{}.order);
  has("layers per stage given", !plan.layers_per_stage.empty());
  has("stage without layers", std::ranges::find(plan.layers_per_stage, 0) != plan.layers_per_stage.end());
  has("microbatch group", plan.microbatch_group > 0);
  has("images", plan.images > 0);
  has("frozen tower", plan.images > 0 && plan.freeze_tower);
  has("frozen projector", plan.images > 0 && plan.freeze_projector);
}

void add_state(Listing& has, const Plan& plan) {
  has(fmt::format("zero={}", plan.zero), true);
  has("zero shard", plan.zero_shard > 0);
  has("overlap of parameter gather", plan.overlap_param_gather);
  has("no reshard after forward", plan.zero == 3 && !plan.reshard_after_forward);
  has("reduce once", plan.zero >= 2 && !plan.reduce_each_microbatch);
  has("prefetch 0", plan.zero == 3 && plan.prefetch == 0);
  has("overlap of gradient reduction", plan.overlap_grad_reduce && plan.dp * plan.cp > 1);
  has("no overlap of gradient reduction", !plan.overlap_grad_reduce && plan.dp * plan.cp > 1);
  has("offload=" + to_string(plan.offload), true);
  has("clipped gradients", plan.clip_grad > 0);
  has("step rank by rank", !plan.sync_step);
  has("recipe=" + to_string(plan.recipe), true);
  has("gradients on the wire=" + to_string(plan.grad_reduce), true);
}

void add_kernels(Listing& has, const Plan& plan) {
  has("schedule=" + to_string(plan.schedule), true);
  has("recompute=" + to_string(plan.recompute), true);
  has("recompute by " + to_string(plan.recompute_method), plan.recompute == Recompute::full);
  for (const RecomputeModule module : plan.recompute_modules)
    has("recompute of " + to_string(module), plan.recompute == Recompute::selective);
  has("recompute that stops early", plan.recompute_early_stop && plan.recompute == Recompute::full);
  has("precision=" + to_string(plan.precision), true);
  has("framework=" + to_string(plan.framework), true);
  has("sequence parallel", plan.sequence_parallel);
  has("tensor parallel without sequence parallel", plan.tp > 1 && !plan.sequence_parallel);
  has("unfused attention", !plan.fused_attention);
  has("unfused cross entropy", !plan.fused_cross_entropy);
  has("loss fused by " + to_string(plan.loss_fusion), plan.fused_cross_entropy);
  has("unfused softmax", !plan.fused_softmax && !plan.fused_attention);
  has("metrics of the loss", plan.train_metrics > 0);
  has("unfused norm", !plan.fused_norm);
  has("unfused rotary", !plan.fused_rotary);
  has("unfused activation", !plan.fused_activation);
  has("unfused permutation", !plan.fused_permute);
  has("unfused router", !plan.fused_router);
  has("experts in fused products", plan.fused_experts);
  has("logits in fp8", plan.fp8_output_proj);
  has("attention in fp8", plan.fp8_attention);
  has("layers kept in bf16", plan.bf16_first_layers + plan.bf16_last_layers > 0);
  has("gradients added by autograd", !plan.fused_accumulation);
  has("messages in parts", plan.scatter_gather);
  has("passes in pairs", plan.pairs_passes());
  has("experts within dp", plan.experts_within_dp());
  has("rows picked by a mask", plan.picks_rows_by_mask());
  has("unfused Adam", !plan.fused_adam);
  has("optimizer in passes", !plan.fused_step);
  has("pipeline messages beside compute", plan.overlap_p2p && plan.pp > 1);
  has("compute waits for pipeline messages", !plan.overlap_p2p && plan.pp > 1);
  has("tensor-parallel overlap", plan.tp_comm_overlap);
  has("tensor-parallel overlap backward", plan.tp_backward_overlap && plan.tp > 1);
  has("CUDA graphs of passes", plan.cuda_graph && plan.cuda_graph_modules.empty());
  for (const GraphModule module : plan.cuda_graph_modules) has("CUDA graphs of " + to_string(module), true);
  has("one queue", plan.one_queue);
  has("host that waits for each kernel", plan.launch_blocking);
  has("fp8 weights held once", plan.fp8_weight_copies == 1);
  has("fp8 scaled by " + to_string(plan.fp8_scaling), plan.precision == Precision::fp8);
  has("fp8 operands written once", plan.precision == Precision::fp8 && plan.fp8_either_layout);
  has("expert imbalance", plan.moe_imbalance > 1);
  has("expert capacity", plan.moe_capacity > 0);
  has("dispatcher=" + to_string(plan.dispatcher), plan.ep > 1);
}

void add_conditions(Listing& has, const Experiment& experiment) {
  const Conditions& conditions = experiment.conditions;
  has("fabric=" + to_string(experiment.cluster.fabric.kind), true);
  has("oversubscribed fabric", has_shared_links(experiment.cluster.fabric));
  has("several nodes", experiment.plan.gpus() > experiment.cluster.node.gpus);
  has("placement=" + to_string(conditions.placement), true);
  has("no PXN", !conditions.pxn);
  has("jitter", conditions.has_jitter());
  has("mixed nodes", !experiment.stage_nodes.empty());
  for (const Slow& slow : conditions.slow) {
    has("slow rank", slow.part == Slow::Part::rank);
    has("slow GPU link", slow.part == Slow::Part::gpu_link);
    has("slow NIC", slow.part == Slow::Part::nic && slow.speed > 0);
    has("NIC down", slow.part == Slow::Part::nic && slow.speed == 0);
  }
}

const char* const kModels[] = {"llama",       "gpt2",        "mistral", "qwen3",
                               "gpt_neox",    "nemotron",    "mixtral", "qwen3_moe",
                               "deepseek_v2", "deepseek_v3", "gpt_oss", "nemotron_h"};
const char* const kClusters[] = {"dgx-h100",         "dgx-a100-80gb", "meta-24k-h100", "frontier",
                                 "polaris",          "gb200-nvl72",   "dgx-b200",      "p3.16xlarge",
                                 "a40-nvlink-pairs", "cpu-node"};

// Fields that a Plan with one value of each enumeration does not show.
std::set<std::string> wanted_beside_enumerations() {
  Plan plan;
  plan.tp = plan.pp = plan.vpp = plan.dp = plan.ep = plan.etp = 2;
  plan.layers_per_stage = {0};
  plan.microbatch_group = 2;
  plan.zero = 3;
  plan.zero_shard = 2;
  plan.overlap_param_gather = plan.sequence_parallel = plan.overlap_p2p = plan.tp_comm_overlap = true;
  plan.cuda_graph = plan.one_queue = plan.launch_blocking = plan.scatter_gather = plan.overlap_experts = true;
  plan.fp8_weight_copies = 1;
  plan.reshard_after_forward = plan.reduce_each_microbatch = plan.sync_step = plan.fused_attention = false;
  plan.fused_softmax = plan.fused_cross_entropy = plan.fused_norm = plan.fused_rotary =
      plan.fused_activation = plan.fused_permute = plan.fused_router = plan.fused_accumulation = false;
  plan.fused_adam = plan.fused_step = false;
  plan.fused_experts = plan.fp8_output_proj = plan.fp8_attention = true;
  plan.bf16_last_layers = 1;
  plan.prefetch = 0;
  plan.clip_grad = 1;
  plan.moe_imbalance = 2;
  plan.moe_capacity = 1;
  plan.order = {Axis::dp, Axis::tp, Axis::cp, Axis::ep, Axis::pp};
  std::set<std::string> features = {"etp<tp",
                                    "one GPU",
                                    "no overlap of gradient reduction",
                                    "jitter",
                                    "tensor parallel without sequence parallel",
                                    "several nodes",
                                    "compute waits for pipeline messages",
                                    "oversubscribed fabric",
                                    "mixed nodes",
                                    "no PXN",
                                    "slow rank",
                                    "slow GPU link",
                                    "slow NIC",
                                    "NIC down"};
  Listing has(features);
  add_degrees(has, plan);
  add_state(has, plan);
  add_kernels(has, plan);
  return features;
}

}  // namespace

std::set<std::string> features_of(const Drawn& drawn, const Experiment& experiment) {
  std::set<std::string> features;
  Listing has(features);
  add_degrees(has, experiment.plan);
  add_state(has, experiment.plan);
  add_kernels(has, experiment.plan);
  add_conditions(has, experiment);
  has("model=" + drawn.config.at("model_type").get<std::string>(), true);
  has("cluster=" + drawn.scenario.at("cluster").get<std::string>(), true);
  has("sliding window", experiment.model.window > 0);
  has("tied embeddings", experiment.model.tied_embeddings);
  has("YaRN", experiment.model.yarn);
  has("windows in some layers", experiment.model.full_every > 0);
  has("multi-token prediction", experiment.model.mtp_layers > 0);
  has("experts of a latent width", experiment.model.experts && experiment.model.experts->latent > 0);
  has("a module of several layers", experiment.model.mtp_pattern.size() > 1);
  return features;
}

std::set<std::string> wanted_features() {
  std::set<std::string> features = wanted_beside_enumerations();
  Listing has(features);
  for (const ScheduleName name : kScheduleNames) has("schedule=" + to_string(name), true);
  for (const LossFusion fusion : kLossFusions) has("loss fused by " + to_string(fusion), true);
  for (const Fp8Scaling scaling : kFp8Scalings) has("fp8 scaled by " + to_string(scaling), true);
  has("fp8 operands written once", true);
  for (const Dispatcher dispatcher : kDispatchers) has("dispatcher=" + to_string(dispatcher), true);
  for (const GraphModule module : kGraphModules) has("CUDA graphs of " + to_string(module), true);
  for (const RecomputeModule module : kRecomputeModules)
    if (module != RecomputeModule::shared_experts) has("recompute of " + to_string(module), true);
  for (int zero = 0; zero <= 3; ++zero) has(fmt::format("zero={}", zero), true);
  for (const char* model : kModels) has(std::string("model=") + model, true);
  for (const char* cluster : kClusters) has(std::string("cluster=") + cluster, true);
  for (const char* name : {"cp=p2p",
                           "cp=allgather",
                           "cp=a2a",
                           "offload=none",
                           "offload=optimizer",
                           "offload=activations",
                           "recompute=none",
                           "recompute=selective",
                           "recompute=op",
                           "recompute=full",
                           "recompute that stops early",
                           "recompute by uniform",
                           "recompute by block",
                           "precision=bf16",
                           "precision=fp16",
                           "precision=fp8",
                           "precision=fp4",
                           "precision=fp32",
                           "framework=megatron-2021",
                           "framework=megatron-core",
                           "framework=deepspeed-2021",
                           "framework=deepspeed",
                           "framework=fsdp1",
                           "framework=fsdp",
                           "framework=torchtitan",
                           "framework=nanotron",
                           "framework=internevo",
                           "framework=aleph-scaling",
                           "recipe=megatron",
                           "recipe=zero",
                           "recipe=sagemaker",
                           "recipe=deepspeed-bf16",
                           "recipe=nanotron",
                           "recipe=fsdp",
                           "recipe=autocast",
                           "recipe=bf16",
                           "recipe=fp8-weights",
                           "fabric=switch",
                           "fabric=fat-tree",
                           "fabric=dragonfly",
                           "fabric=torus",
                           "placement=compact",
                           "placement=scattered",
                           "placement=random",
                           "sliding window",
                           "windows in some layers",
                           "YaRN",
                           "images",
                           "frozen tower",
                           "frozen projector",
                           "multi-token prediction",
                           "experts of a latent width",
                           "a module of several layers",
                           "tied embeddings"})
    has(name, true);
  return features;
}

void Coverage::taken(const Drawn& drawn, const Experiment& experiment) {
  ++taken_;
  for (const std::string& feature : features_of(drawn, experiment)) ++features_[feature];
}

void Coverage::discarded(const std::string& rule) {
  ++discarded_;
  ++rules_[rule];
}

double Coverage::discard_rate() const {
  return discarded_ / std::max(1.0, static_cast<double>(taken_ + discarded_));
}

std::string Coverage::table() const {
  std::string text =
      fmt::format("{} legal runs, {} refused ({:.1f} %)\n", taken_, discarded_, 100 * discard_rate());
  for (const auto& [feature, runs] : features_)
    text += fmt::format("  {:<44} {:>6} {:>5.1f} %\n", feature, runs, 100.0 * runs / std::max(1, taken_));
  for (const auto& [rule, runs] : rules_) text += fmt::format("  refused {:>5}: {}\n", runs, rule);
  return text;
}

Coverage& coverage() {
  static Coverage coverage;
  return coverage;
}

}  // namespace rehearse::properties
