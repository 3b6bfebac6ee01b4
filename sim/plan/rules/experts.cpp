#include <fmt/core.h>

#include "plan/ranks.h"
#include "plan/rules/rules.h"
#include "plan/work/recompute.h"

namespace rehearse {

namespace {

constexpr double kMaxLoad = 1024;
constexpr std::int64_t kMaxMultiprocessors = 1 << 14;

class ExpertRules {
 public:
  ExpertRules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken)
      : plan_(plan), model_(model), broken_(broken) {}

  void check() {
    load();
    if (!model_.experts) return without_experts();
    divides("ep", plan_.ep, "experts", model_.experts->count);
    divides("etp", plan_.etp, "width of an expert", model_.experts->ffn_hidden);
    divides("tp", plan_.tp, "width of the shared experts", model_.experts->shared_ffn_hidden);
    if (plan_.experts_within_dp())
      within_dp();
    else if (mesh())
      pipelines();
    if (plan_.overlap_experts) pairs();
    if (plan_.fused_experts) fused();
    dispatcher();
    if (plan_.tp > 1 && !plan_.sequence_parallel)
      report("sequence_parallel", "experts with tensor parallelism need sequence parallelism",
             fmt::format("tp = {}, sequence_parallel = off", plan_.tp), "on");
  }

 private:
  void report(const std::string& field, std::string rule, std::string values, Remedies remedies) {
    broken_.push_back({"", field, std::move(rule), std::move(values), std::move(remedies)});
  }

  void load() {
    if (!(plan_.moe_imbalance >= 1 && plan_.moe_imbalance <= kMaxLoad))
      report("moe_imbalance", fmt::format("must be from 1 to {}", kMaxLoad),
             fmt::format("found {}", plan_.moe_imbalance), "1");
    if (!(plan_.moe_capacity == 0 || (plan_.moe_capacity >= 0.01 && plan_.moe_capacity <= kMaxLoad)))
      report("moe_capacity", fmt::format("must be 0 (dropless) or from 0.01 to {}", kMaxLoad),
             fmt::format("found {}", plan_.moe_capacity), "0, or 1");
    if (plan_.moe_capacity > 0 && plan_.moe_imbalance > 1)
      report("moe_imbalance", "experts that are padded to their capacity receive equal loads",
             fmt::format("moe_capacity = {}, moe_imbalance = {}", plan_.moe_capacity, plan_.moe_imbalance),
             "1, or moe_capacity = 0");
  }

  void without_experts() {
    if (plan_.ep != 1) report("ep", "the model has no experts", fmt::format("ep = {}", plan_.ep), "1");
    if (plan_.etp != 1) report("etp", "the model has no experts", fmt::format("etp = {}", plan_.etp), "1");
    if (plan_.moe_imbalance != 1)
      report("moe_imbalance", "the model has no experts", fmt::format("found {}", plan_.moe_imbalance), "1");
    if (plan_.overlap_experts) report("overlap_experts", "the model has no experts", "on", "off");
    if (plan_.fused_experts) report("fused_experts", "the model has no experts", "on", "off");
    if (plan_.moe_capacity != 0)
      report("moe_capacity", "the model has no experts", fmt::format("found {}", plan_.moe_capacity), "0");
    if (plan_.dispatcher != Dispatcher::all_to_all)
      report("moe_dispatcher", "the model has no experts", to_string(plan_.dispatcher), "alltoall");
    if (plan_.dispatcher_sms != 0)
      report("moe_dispatcher_sms", "the model has no experts", std::to_string(plan_.dispatcher_sms), "0");
  }

  // core/transformer/moe/experts.py: _is_fused_impl_supported.
  void fused() {
    if (plan_.precision != Precision::fp8 || plan_.fp8_scaling != Fp8Scaling::mx)
      report("fused_experts", "fused experts need precision fp8 with MXFP8 scaling",
             fmt::format("precision {}, fp8 scaling {}", to_string(plan_.precision),
                         to_string(plan_.fp8_scaling)),
             "off, or precision = fp8 with fp8_scaling = mx");
    if (plan_.etp > 1 || !model_.gated_mlp)
      report("fused_experts", "fused experts need SwiGLU and etp = 1",
             fmt::format("etp = {}, {} activation", plan_.etp, model_.gated_mlp ? "gated" : "plain"), "off");
    if (plan_.weights_rows_at_home())
      report("fused_experts", "fused experts apply the router weights in the activation",
             fmt::format("core_release = {}", plan_.core_release), "core_release = 0, or core_release = 13");
    if (plan_.recompute == Recompute::full || reruns(plan_, RecomputeModule::moe) ||
        reruns(plan_, RecomputeModule::moe_act) || plan_.recompute == Recompute::op)
      report("fused_experts", "the outputs of fused expert GEMMs cannot be recomputed",
             fmt::format("recompute {}", to_string(plan_.recompute)), "off, or recompute = none");
  }

  // Megatron-LM, core/transformer/moe/token_dispatcher.py: MoEFlexTokenDispatcher.
  void dispatcher() {
    const std::string name = to_string(plan_.dispatcher);
    if (plan_.dispatcher == Dispatcher::all_to_all) {
      if (plan_.dispatcher_sms != 0)
        report("moe_dispatcher_sms", "NCCL's all-to-all uses one SM per channel, not a given number",
               fmt::format("moe_dispatcher = {}, moe_dispatcher_sms = {}", name, plan_.dispatcher_sms), "0");
      return;
    }
    if (plan_.ep == 1)
      report("moe_dispatcher", "token dispatch needs expert parallelism",
             fmt::format("moe_dispatcher = {}, ep = 1", name), "alltoall, or ep = 2");
    if (plan_.etp > 1)
      report("moe_dispatcher", "DeepEP and HybridEP are modelled only for experts without tensor parallelism",
             fmt::format("moe_dispatcher = {}, etp = {}", name, plan_.etp), "alltoall, or etp = 1");
    if (plan_.moe_capacity > 0)
      report("moe_dispatcher", "expert capacity is modelled only with NCCL's all-to-all",
             fmt::format("moe_dispatcher = {}, moe_capacity = {}", name, plan_.moe_capacity), "alltoall");
    if (plan_.weights_rows_at_home())
      report("core_release", "DeepEP and HybridEP apply the router weights in the activation",
             fmt::format("moe_dispatcher = {}, core_release = {}", name, plan_.core_release), "0, or 13");
    if (plan_.dispatcher == Dispatcher::deepep && plan_.dispatcher_sms % 2 != 0)
      report("moe_dispatcher_sms", "DeepEP needs an even number of SMs",
             fmt::format("moe_dispatcher_sms = {}", plan_.dispatcher_sms),
             multiples_near("moe_dispatcher_sms", plan_.dispatcher_sms, kMaxMultiprocessors, 2));
  }

  // Rules of Megatron-LM (core/transformer/transformer_config.py: overlap_moe_expert_parallel_comm) and
  // DualPipe.
  void pairs() {
    const bool interleaves = plan_.schedule == ScheduleName::interleaved && plan_.vpp > 1;
    if (plan_.pp > 1 && !interleaves && !is_v_shaped(plan_.schedule))
      report("overlap_experts", "overlap of experts needs interleaved-1f1b, dualpipe-v or pp = 1",
             fmt::format("schedule {}, pp = {}, vpp = {}", to_string(plan_.schedule), plan_.pp, plan_.vpp),
             "off, or vpp = 2 with schedule = interleaved-1f1b");
    const bool all_again = reruns(plan_, RecomputeModule::moe);
    if (plan_.recompute == Recompute::full || all_again)
      report("overlap_experts", "recomputed token dispatch and combine cannot overlap another pass",
             fmt::format("recompute {}", all_again ? "of moe" : "full"), "off");
  }

  void divides(const std::string& field, int degree, const std::string& what, std::int64_t value) {
    if (value % degree == 0) return;
    report(field, fmt::format("{} must divide the {}", field, what),
           fmt::format("{} = {}, {} = {}", what, value, field, degree),
           numbers_near(field, degree, value, [value](std::int64_t n) { return value % n == 0; }));
  }

  // The ranks of a pipeline stage, as tp x cp x dp and as etp x ep x replicas of an expert.
  bool mesh() {
    const std::int64_t ranks = std::int64_t{plan_.tp} * plan_.cp * plan_.dp;
    const std::int64_t used = std::int64_t{plan_.ep} * plan_.etp;
    if (ranks % used == 0) return true;
    const std::int64_t ep = plan_.ep, etp = plan_.etp, experts = model_.experts->count;
    report("ep", "ep x etp must divide tp x cp x dp",
           fmt::format("ep {} x etp {} = {}, tp {} x cp {} x dp {} = {}", plan_.ep, plan_.etp, used, plan_.tp,
                       plan_.cp, plan_.dp, ranks),
           std::vector{
               numbers_near("ep", plan_.ep, ranks,
                            [=](std::int64_t n) { return ranks % (n * etp) == 0 && experts % n == 0; }),
               numbers_near("etp", plan_.etp, ranks, [=](std::int64_t n) { return ranks % (ep * n) == 0; })});
    return false;
  }

  void within_dp() {
    const std::string release = fmt::format("core_release = {}", plan_.core_release);
    if (plan_.dp % plan_.ep != 0)
      report("ep", "ep must divide dp before Megatron core 0.10",
             fmt::format("ep = {}, dp = {}, {}", plan_.ep, plan_.dp, release),
             numbers_near("ep", plan_.ep, plan_.dp,
                          [dp = plan_.dp, experts = model_.experts->count](std::int64_t ep) {
                            return dp % ep == 0 && experts % ep == 0;
                          }));
    if (plan_.etp != plan_.tp)
      report("etp", "etp must equal tp before Megatron core 0.10",
             fmt::format("etp = {}, tp = {}, {}", plan_.etp, plan_.tp, release), std::to_string(plan_.tp));
  }

  void pipelines() {
    if (RankGrid(plan_).group(0, Axis::pp) == RankGrid::of_experts(plan_).group(0, Axis::pp)) return;
    report("order", "experts and the other layers must be on the same pipeline ranks",
           fmt::format("etp {} x ep {} and tp {} x cp {} place pp differently", plan_.etp, plan_.ep, plan_.tp,
                       plan_.cp),
           "tp-cp-ep-dp-pp");
  }

  const Plan& plan_;
  const Model& model_;
  std::vector<BrokenRule>& broken_;
};

}  // namespace

void add_expert_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken) {
  ExpertRules(plan, model, broken).check();
}

}  // namespace rehearse
