#include "plan/field_rows.h"

namespace rehearse {

namespace {

constexpr std::array kWirePrecisions = {Precision::fp32, Precision::bf16, Precision::fp16};
constexpr double kMaxShare = 1e6;  // of expert load over an even one

bool gathers_layers(const Plan& plan, const Model&) {
  return plan.zero == 3;
}
bool divides_gradients(const Plan& plan, const Model&) {
  return plan.zero >= 2;
}
bool gathers_once(const Plan& plan, const Model&) {
  return plan.zero == 1 || plan.zero == 2;
}
bool splits_context(const Plan& plan, const Model&) {
  return plan.cp > 1;
}
bool dispatches(const Plan& plan, const Model& model) {
  return model.experts && plan.ep > 1;
}

std::vector<PlanField> sharding() {
  using enum HelpGroup;
  return {
      {{"zero",
        "--zero",
        {},
        memory,
        true,
        "0..3",
        "ZeRO: shard 1 optimizer state, 2 gradients, 3 parameters too"},
       IntegerField{&Plan::zero, 0, 3},
       always},
      {{"zero_shard", "--zero-shard", {}, memory, false, "N", "ranks of a sharding group", "all of dp"},
       IntegerField{&Plan::zero_shard, 0, kMaxInt},
       always},
      {{"overlap_param_gather",
        "--overlap-param-gather",
        {},
        overlap,
        true,
        "",
        "ZeRO-1, 2: gather parameters beside the next step's forward"},
       SwitchField{&Plan::overlap_param_gather},
       gathers_once},
      {{"reshard_after_forward",
        "--reshard-after-forward",
        {},
        memory,
        false,
        "",
        "ZeRO-3: free parameters after the forward pass and gather them again",
        "on where pp = 1"},
       SwitchField{&Plan::reshard_after_forward},
       gathers_layers},
      {{"reduce_each_microbatch",
        "--reduce-each-microbatch",
        {},
        memory,
        false,
        "",
        "ZeRO-2, 3: reduce gradients after each microbatch, not after the last",
        "on where pp = 1"},
       SwitchField{&Plan::reduce_each_microbatch},
       divides_gradients},
      {{"prefetch", "--prefetch", {}, overlap, false, "N", "ZeRO-3: layers gathered ahead"},
       IntegerField{&Plan::prefetch, 0, kMaxInt},
       gathers_layers},
      {{"grad_reduce",
        "--grad-reduce-precision",
        {},
        precision,
        false,
        "",
        "precision of gradients on the wire"},
       choice<&Plan::grad_reduce, kWirePrecisions>(),
       always},
      {{"offload", "--offload", {}, memory, false, "", "state kept in the host's memory"},
       choice<&Plan::offload, kOffloads>(),
       always},
  };
}

std::vector<PlanField> framework_and_order() {
  using enum HelpGroup;
  return {
      {{"framework",
        "--framework",
        {},
        inputs,
        true,
        "NAME[@VERSION]",
        "whose defaults; `rehearse list frameworks`",
        "megatron-core"},
       choice<&Plan::framework, kFrameworks>(),
       always},
      {{"order", "--order", {}, parallelism, false, "AXES", "rank order, fastest first", "tp-cp-ep-dp-pp"},
       AxesField{},
       always},
      {{"layers_per_stage",
        "--layers-per-stage",
        {},
        pipeline,
        true,
        "LIST|auto",
        "layers of each stage; auto: fastest of some splits",
        "an even split"},
       LayersField{},
       always},
      {{"microbatch_group",
        "--microbatch-group",
        {"--microbatch-group-size-per-virtual-pipeline-stage", "--microbatch-group-size-per-vp-stage"},
        pipeline,
        false,
        "N",
        "interleaving: microbatches of a chunk before the next chunk",
        "pp"},
       IntegerField{&Plan::microbatch_group, 0, kMaxInt},
       has_chunks},
      {{"sync_step",
        "--sync-step",
        {},
        overlap,
        false,
        "",
        "pipeline ranks take the optimizer step together"},
       SwitchField{&Plan::sync_step},
       always},
      {{"clip_grad",
        "--clip-grad",
        {},
        kernels,
        false,
        "X",
        "clip gradients to this norm (Megatron-LM: 1.0); 0: no clipping"},
       NumberField{&Plan::clip_grad, 0, kMaxClipGrad},
       always},
  };
}

std::vector<PlanField> experts_and_collectives() {
  using enum HelpGroup;
  return {
      {{"moe_imbalance",
        "--moe-imbalance",
        {},
        experts,
        true,
        "X",
        "tokens of the busiest rank's experts over an even share"},
       NumberField{&Plan::moe_imbalance, 0, kMaxShare},
       has_experts},
      {{"moe_capacity",
        "--moe-capacity",
        {"--moe-expert-capacity-factor"},
        experts,
        false,
        "X",
        "pad experts to X even shares; 0: dropless"},
       NumberField{&Plan::moe_capacity, 0, kMaxShare},
       has_experts},
      {{"core_release",
        "--core-release",
        {},
        experts,
        false,
        "N",
        "minor version of Megatron core whose experts run: 9 for 0.9; 0: current"},
       IntegerField{&Plan::core_release, 0, 99},
       has_experts},
      {{"moe_dispatcher",
        "--moe-dispatcher",
        {"--moe-flex-dispatcher-backend"},
        experts,
        true,
        "",
        "dispatch and combine by"},
       choice<&Plan::dispatcher, kDispatchers>(),
       dispatches},
      {{"moe_dispatcher_sms",
        "--moe-dispatcher-sms",
        {"--moe-flex-dispatcher-num-sms"},
        experts,
        false,
        "N",
        "SMs that deepep or hybridep runs on",
        "its own choice"},
       IntegerField{&Plan::dispatcher_sms, 0, kMaxInt},
       dispatches},
      {{"cp_comm_type",
        "--cp-comm-type",
        {},
        overlap,
        false,
        "",
        "context parallelism: p2p is ring attention, a2a is Ulysses"},
       choice<&Plan::cp_exchange, kContextExchanges>(),
       splits_context},
      {{"tp_comm_overlap",
        "--tp-comm-overlap",
        {},
        overlap,
        true,
        "",
        "tensor-parallel collectives in chunks beside their GEMMs"},
       SwitchField{&Plan::tp_comm_overlap},
       splits_tensors},
      {{"tp_comm_proj_sms",
        "--tp-comm-proj-sms",
        {},
        overlap,
        false,
        "N",
        "SM margin of attention's projection for its reduce-scatter"},
       IntegerField{&Plan::tp_comm_proj_sms, 0, kMaxInt},
       splits_tensors},
      {{"tp_comm_fc2_sms",
        "--tp-comm-fc2-sms",
        {},
        overlap,
        false,
        "N",
        "SM margin of the MLP's second layer for its reduce-scatter"},
       IntegerField{&Plan::tp_comm_fc2_sms, 0, kMaxInt},
       splits_tensors},
      {{"tp_backward_overlap",
        "--tp-backward-overlap",
        {"--async-tensor-model-parallel-allreduce"},
        overlap,
        false,
        "",
        "tensor-parallel collectives beside backward GEMMs"},
       SwitchField{&Plan::tp_backward_overlap},
       splits_tensors},
  };
}

}  // namespace

std::vector<PlanField> fields_of_state() {
  std::vector<PlanField> all = sharding();
  for (const auto& group : {framework_and_order, experts_and_collectives})
    std::ranges::move(group(), std::back_inserter(all));
  return all;
}

}  // namespace rehearse
