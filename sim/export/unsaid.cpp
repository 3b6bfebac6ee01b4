#include "export/unsaid.h"

#include <algorithm>
#include <array>

#include "plan/framework.h"

namespace rehearse {

namespace {

template <auto Field>
bool differ(const Plan& a, const Plan& b) {
  return a.*Field != b.*Field;
}

// To divide the state among all replicas is what 0 means.
bool divides_otherwise(const Plan& a, const Plan& b) {
  const auto ranks = [](const Plan& plan) {
    return plan.zero_shard == plan.dp * plan.cp ? 0 : plan.zero_shard;
  };
  return ranks(a) != ranks(b);
}

using Matters = bool (*)(const Plan&, const Model&);

bool always(const Plan&, const Model&) {
  return true;
}
bool in_fp8(const Plan& plan, const Model&) {
  return plan.precision == Precision::fp8;
}
bool has_scores(const Plan& plan, const Model&) {
  return !plan.fused_attention;
}
bool splits_tensors(const Plan& plan, const Model&) {
  return plan.tp > 1;
}
bool splits_context(const Plan& plan, const Model&) {
  return plan.cp > 1;
}
bool splits_layers(const Plan& plan, const Model&) {
  return plan.pp > 1;
}
bool has_chunks(const Plan& plan, const Model&) {
  return plan.vpp > 1;
}
bool has_replicas(const Plan& plan, const Model& model) {
  return plan.dp * plan.cp > 1 || (model.experts && plan.edp() > 1);
}
bool has_buckets(const Plan& plan, const Model& model) {
  return plan.zero > 0 || has_replicas(plan, model);
}
bool has_experts(const Plan&, const Model& model) {
  return model.experts.has_value();
}
bool gathers_layers(const Plan& plan, const Model&) {
  return plan.zero == 3;
}
bool divides_gradients(const Plan& plan, const Model&) {
  return plan.zero >= 2;
}
bool gathers_once(const Plan& plan, const Model&) {
  return plan.zero == 1 || plan.zero == 2;
}
bool reruns_all(const Plan& plan, const Model&) {
  return plan.recompute == Recompute::full;
}
bool reruns_modules(const Plan& plan, const Model&) {
  return plan.recompute == Recompute::selective;
}
bool quantises(const Plan& plan, const Model&) {
  return is_quantised(plan.precision);
}
bool has_graphs(const Plan& plan, const Model&) {
  return plan.cuda_graph;
}

struct Key {
  const char* name;
  bool (*differs)(const Plan&, const Plan&);
  Matters matters;
};

constexpr std::array kKeys = {
    Key{"framework", differ<&Plan::framework>, always},
    Key{"seq", differ<&Plan::seq>, always},
    Key{"order", differ<&Plan::order>, always},
    Key{"precision", differ<&Plan::precision>, always},
    Key{"recipe", differ<&Plan::recipe>, always},
    Key{"fp8_weight_copies", differ<&Plan::fp8_weight_copies>, in_fp8},
    Key{"fp8_scaling", differ<&Plan::fp8_scaling>, in_fp8},
    Key{"schedule", differ<&Plan::schedule>, always},
    Key{"layers_per_stage", differ<&Plan::layers_per_stage>, always},
    Key{"microbatch_group", differ<&Plan::microbatch_group>, has_chunks},
    Key{"overlap_p2p", differ<&Plan::overlap_p2p>, splits_layers},
    Key{"scatter_gather", differ<&Plan::scatter_gather>, splits_layers},
    Key{"recompute", differ<&Plan::recompute>, always},
    Key{"recompute_method", differ<&Plan::recompute_method>, reruns_all},
    Key{"recompute_num_layers", differ<&Plan::recompute_layers>, reruns_all},
    Key{"recompute_modules", differ<&Plan::recompute_modules>, reruns_modules},
    Key{"recompute_early_stop", differ<&Plan::recompute_early_stop>, reruns_all},
    Key{"sequence_parallel", differ<&Plan::sequence_parallel>, splits_tensors},
    Key{"tp_comm_overlap", differ<&Plan::tp_comm_overlap>, splits_tensors},
    Key{"tp_comm_proj_sms", differ<&Plan::tp_comm_proj_sms>, splits_tensors},
    Key{"tp_comm_fc2_sms", differ<&Plan::tp_comm_fc2_sms>, splits_tensors},
    Key{"tp_backward_overlap", differ<&Plan::tp_backward_overlap>, splits_tensors},
    Key{"cp_comm_type", differ<&Plan::cp_exchange>, splits_context},
    Key{"fused_attention", differ<&Plan::fused_attention>, always},
    Key{"fused_softmax", differ<&Plan::fused_softmax>, has_scores},
    Key{"fused_cross_entropy", differ<&Plan::fused_cross_entropy>, always},
    Key{"cross_entropy_fusion_impl", differ<&Plan::loss_fusion>, always},
    Key{"fused_norm", differ<&Plan::fused_norm>, always},
    Key{"fused_rotary", differ<&Plan::fused_rotary>, always},
    Key{"fused_activation", differ<&Plan::fused_activation>, always},
    Key{"fused_accumulation", differ<&Plan::fused_accumulation>, always},
    Key{"fused_adam", differ<&Plan::fused_adam>, always},
    Key{"fused_step", differ<&Plan::fused_step>, always},
    Key{"fused_permute", differ<&Plan::fused_permute>, has_experts},
    Key{"fused_router", differ<&Plan::fused_router>, has_experts},
    Key{"fused_experts", differ<&Plan::fused_experts>, has_experts},
    Key{"fp8_output_proj", differ<&Plan::fp8_output_proj>, in_fp8},
    Key{"bf16_first_layers", differ<&Plan::bf16_first_layers>, quantises},
    Key{"bf16_last_layers", differ<&Plan::bf16_last_layers>, quantises},
    Key{"fp8_dot_product_attention", differ<&Plan::fp8_attention>, quantises},
    Key{"overlap_experts", differ<&Plan::overlap_experts>, has_experts},
    Key{"etp", differ<&Plan::etp>, has_experts},
    Key{"moe_capacity", differ<&Plan::moe_capacity>, has_experts},
    Key{"core_release", differ<&Plan::core_release>, has_experts},
    Key{"cuda_graph", differ<&Plan::cuda_graph>, always},
    Key{"cuda_graph_modules", differ<&Plan::cuda_graph_modules>, has_graphs},
    Key{"one_queue", differ<&Plan::one_queue>, always},
    Key{"launch_blocking", differ<&Plan::launch_blocking>, always},
    Key{"train_metrics", differ<&Plan::train_metrics>, always},
    Key{"zero", differ<&Plan::zero>, always},
    Key{"zero_shard", divides_otherwise, always},
    Key{"overlap_grad_reduce", differ<&Plan::overlap_grad_reduce>, always},
    Key{"overlap_param_gather", differ<&Plan::overlap_param_gather>, gathers_once},
    Key{"bucket", differ<&Plan::bucket_bytes>, has_buckets},
    Key{"grad_reduce", differ<&Plan::grad_reduce>, always},
    Key{"reshard_after_forward", differ<&Plan::reshard_after_forward>, gathers_layers},
    Key{"reduce_each_microbatch", differ<&Plan::reduce_each_microbatch>, divides_gradients},
    Key{"prefetch", differ<&Plan::prefetch>, gathers_layers},
    Key{"offload", differ<&Plan::offload>, always},
    Key{"sync_step", differ<&Plan::sync_step>, always}};

}  // namespace

Plan untold(const Model& model, const Plan& plan, Framework framework) {
  Plan own;
  own.framework = framework;
  own.precision = plan.precision;
  own.tp = plan.tp;
  own.cp = plan.cp;
  own.ep = plan.ep;
  own.dp = plan.dp;
  own.pp = plan.pp;
  own.vpp = plan.vpp;
  own.micro_batch = plan.micro_batch;
  own.global_batch = plan.global_batch;
  own.schedule = plan.schedule;
  own.zero = plan.zero;
  own.zero_shard = plan.zero_shard;
  own.clip_grad = plan.clip_grad;
  own.etp = model.experts ? plan.tp : 1;
  apply_framework(own);
  // As scenarios have it; an interleaved schedule of one chunk a rank goes by the name of 1f1b.
  const bool is_1f1b = plan.schedule == ScheduleName::interleaved && plan.vpp == 1;
  own.overlap_p2p = plan.schedule > ScheduleName::one_f_one_b && !is_1f1b;
  return own;
}

std::vector<std::string> unsaid(const Model& model, const Plan& plan, const Plan& said) {
  std::vector<std::string> names;
  for (const Key& key : kKeys)
    if (key.differs(plan, said) && key.matters(plan, model)) names.emplace_back(key.name);
  return names;
}

}  // namespace rehearse
