#include "plan/rules/rules.h"

#include "plan/frameworks/traits.h"

#include <fmt/core.h>

#include <algorithm>

namespace rehearse {

namespace {

constexpr int kMaxPrefetch = 1024;

class ZeroRules {
 public:
  ZeroRules(const Plan& plan, bool has_experts, std::vector<BrokenRule>& violations)
      : plan_(plan), has_experts_(has_experts), violations_(violations) {}

  void run() {
    ranges();
    if (plan_.zero < 0 || plan_.zero > 3) return;  // the other rules need the stage
    groups();
    one_kind_of_group();
    scaling();
    owners();
    pipeline();
    reductions();
    gathers();
    clipping();
    offload();
  }

 private:
  void report(const std::string& field, std::string rule, std::string values, Remedies remedies) {
    violations_.push_back({"", field, std::move(rule), std::move(values), std::move(remedies)});
  }

  void ranges() {
    const auto within = [&](const char* field, int value, int least, int most) {
      if (value >= least && value <= most) return;
      report(field, fmt::format("must be from {} to {}", least, most), fmt::format("found {}", value),
             std::to_string(std::clamp(value, least, most)));
    };
    within("zero", plan_.zero, 0, 3);
    within("prefetch", plan_.prefetch, 0, kMaxPrefetch);
    if (is_quantized(plan_.grad_reduce))
      report("grad_reduce", "gradients cannot be reduced in fp8 or fp4",
             "found " + to_string(plan_.grad_reduce), "bf16");
  }

  void groups() {
    if (plan_.zero_shard == 0) return;
    if (plan_.zero == 0)
      report("zero_shard", "a sharding group needs ZeRO-1 or higher",
             fmt::format("zero shard = {}, zero = 0", plan_.zero_shard), "zero = 1, or 0");
    const std::int64_t replicas = std::int64_t{plan_.dp} * plan_.cp;
    const auto divides = [replicas](std::int64_t size) { return replicas % size == 0; };
    if (plan_.zero_shard < 0 || !divides(plan_.zero_shard))
      report("zero_shard", "the size of a sharding group must divide the replicas",
             fmt::format("zero shard = {}, dp = {}, cp = {}", plan_.zero_shard, plan_.dp, plan_.cp),
             numbers_near("zero_shard", std::max(1, plan_.zero_shard), replicas, divides));
  }

  // Groups of dense parameters and groups of experts would have different ranks.
  void one_kind_of_group() {
    if (plan_.zero_shard == 0 || !has_experts_ || (plan_.ep == 1 && plan_.etp == plan_.tp)) return;
    report("zero_shard", "sharding groups are not supported with expert parallelism",
           fmt::format("zero shard = {}, ep = {}, etp = {}", plan_.zero_shard, plan_.ep, plan_.etp),
           fmt::format("0, or ep = 1 with etp = {}", plan_.tp));
  }

  void scaling() {
    if (plan_.zero <= traits(plan_).max_zero) return;
    report("zero", fmt::format("{} shards only the optimizer state", traits(plan_).project),
           fmt::format("zero = {}", plan_.zero), "zero = 1");
  }

  void owners() {
    if (traits(plan_).owners_broadcast && plan_.overlap_param_gather)
      report("overlap_param_gather",
             "InternEvo broadcasts parameters after the step and cannot overlap a gather",
             fmt::format("framework = {}", to_string(plan_.framework)), "off");
  }

  void pipeline() {
    if (plan_.pp == 1 || plan_.zero <= traits(plan_).max_zero_in_pipelines) return;
    report("zero",
           fmt::format("{} cannot combine ZeRO-2 or ZeRO-3 with pipeline parallelism: every rank accumulates "
                       "unsharded gradients over the microbatches",
                       to_string(plan_.framework)),
           fmt::format("zero = {}, pp = {}", plan_.zero, plan_.pp),
           "1, or pp = 1, or framework = torchtitan");
  }

  void reductions() {
    if (plan_.zero >= 2 && plan_.pp == 1 && !plan_.reduce_each_microbatch && traits(plan_).fsdp == Fsdp::none)
      report("reduce_each_microbatch",
             fmt::format("{} reduces sharded gradients after every microbatch", to_string(plan_.framework)),
             "reduce each microbatch = off", "on, or framework = fsdp, or framework = torchtitan");
    if (plan_.zero >= 2 && !plan_.overlap_grad_reduce)
      report("overlap_grad_reduce", "ZeRO-2 and ZeRO-3 overlap gradient reduction with backward",
             fmt::format("zero = {}", plan_.zero), "on");
  }

  void gathers() {
    if (!plan_.overlap_param_gather || (plan_.zero == 1 || plan_.zero == 2)) return;
    report("overlap_param_gather", "only ZeRO-1 and ZeRO-2 gather the parameters once per iteration",
           fmt::format("zero = {}", plan_.zero), "off, or zero = 1");
  }

  void clipping() {
    const std::string found = fmt::format("clip grad = {}", plan_.clip_grad);
    if (plan_.clip_grad > 0 && !plan_.sync_step)
      report("clip_grad", "gradient clipping needs a synchronized optimizer step",
             found + ", sync step = off", "sync_step = on, or 0");
    if (plan_.clip_grad < 0) report("clip_grad", "must not be negative", found, "0, or 1");
  }

  void offload() {
    if (plan_.offload == Offload::optimizer && plan_.zero == 0 && plan_.dp > 1)
      report("offload", "optimizer offload needs a sharded optimizer state",
             fmt::format("zero = 0, dp = {}", plan_.dp), "zero = 1, or none");
    if (plan_.offload == Offload::activations && plan_.pp == 1 && plan_.schedule != ScheduleName::gpipe)
      report("offload", "activation offload needs pp > 1 or gpipe: backward follows its forward at once",
             "offload = activations, pp = 1", "none, or pp = 2, or schedule = gpipe");
  }

  const Plan& plan_;
  bool has_experts_;
  std::vector<BrokenRule>& violations_;
};

}  // namespace

void add_zero_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& violations) {
  ZeroRules(plan, model.experts.has_value(), violations).run();
}

}  // namespace rehearse
