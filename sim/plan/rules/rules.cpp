// The rules of a legal plan. Each adds the violations that it finds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "plan/frameworks/traits.h"
#include "plan/graphs.h"
#include "plan/limits.h"
#include "plan/plan.h"
#include "plan/rules/root_causes.h"
#include "plan/rules/rules.h"

namespace rehearse {

namespace {

class Rules {
 public:
  Rules(const Plan& plan, const Model& model, std::int64_t gpus) : plan_(plan), model_(model), gpus_(gpus) {}

  std::vector<BrokenRule> broken() {
    degrees();
    if (!violations_.empty()) return violations_;  // the other rules divide by these
    product();
    batch();
    tensor_split();
    layer_split();
    add_pipeline_rules(plan_, violations_);
    further_tokens();
    sequence();
    size();
    add_zero_rules(plan_, model_, violations_);
    add_expert_rules(plan_, model_, violations_);
    add_context_rules(plan_, model_, violations_);
    add_hybrid_rules(plan_, model_, violations_);
    add_recurrence_rules(plan_, model_, violations_);
    add_tower_rules(plan_, model_, violations_);
    add_recompute_rules(plan_, model_, violations_);
    add_recipe_rules(plan_, violations_);
    add_blocking_rules(plan_, violations_);
    add_graph_rules(plan_, model_, violations_);
    return violations_;
  }

 private:
  void report(const std::string& field, std::string rule, std::string values, Remedies remedies) {
    violations_.push_back({"", field, std::move(rule), std::move(values), std::move(remedies)});
  }

  void in_range(const std::string& field, std::int64_t value, std::int64_t most) {
    if (value >= 1 && value <= most) return;
    report(field, fmt::format("must be from 1 to {}", most), fmt::format("found {}", value),
           std::to_string(std::clamp<std::int64_t>(value, 1, most)));
  }

  void degrees() {
    in_range("tp", plan_.tp, kMaxDegree);
    in_range("pp", plan_.pp, kMaxDegree);
    in_range("vpp", plan_.vpp, kMaxDegree);
    in_range("dp", plan_.dp, kMaxDegree);
    in_range("micro_batch", plan_.micro_batch, kMaxSequences);
    in_range("global_batch", plan_.global_batch, kMaxSequences);
    in_range("seq", plan_.seq, kMaxTokens);
    if (plan_.micro_batch >= 1 && plan_.seq > kMaxTokens / plan_.micro_batch) {
      report("seq", fmt::format("a microbatch holds at most {} tokens", kMaxTokens),
             fmt::format("seq {} x micro batch {}", plan_.seq, plan_.micro_batch),
             std::to_string(std::max<std::int64_t>(1, kMaxTokens / plan_.micro_batch)));
    }
    in_range("cp", plan_.cp, kMaxDegree);
    in_range("ep", plan_.ep, kMaxDegree);
    in_range("etp", plan_.etp, kMaxDegree);
    if (violations_.empty()) products();
    std::array<Axis, 5> sorted = plan_.order;
    std::sort(sorted.begin(), sorted.end());
    if (sorted != std::array{Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp}) {
      report("order", "must name tp, cp, ep, dp and pp once each", "", "tp-cp-ep-dp-pp");
    }
  }

  // Requires each degree to be in its range.
  void products() {
    const double replica = 1.0 * plan_.tp * plan_.cp * plan_.pp;
    if (replica * plan_.dp > kMaxRanks)
      report(
          "gpus", fmt::format("tp x cp x pp x dp must be at most {} ranks", kMaxRanks), ranks(),
          replica > kMaxRanks ? "" : fmt::format("dp = {}", static_cast<std::int64_t>(kMaxRanks / replica)));
    if (1.0 * plan_.pp * plan_.vpp > kMaxRanks)
      report("vpp", fmt::format("pp x vpp must be at most {} stages", kMaxRanks),
             fmt::format("pp {} x vpp {}", plan_.pp, plan_.vpp), std::to_string(kMaxRanks / plan_.pp));
    if (1.0 * plan_.ep * plan_.etp > kMaxRanks)
      report("ep", fmt::format("ep x etp must be at most {} ranks", kMaxRanks),
             fmt::format("ep {} x etp {}", plan_.ep, plan_.etp), std::to_string(kMaxRanks / plan_.etp));
  }

  std::string ranks() const {
    return fmt::format("tp {} x cp {} x pp {} x dp {}", plan_.tp, plan_.cp, plan_.pp, plan_.dp);
  }

  void product() {
    const std::int64_t replica = std::int64_t{plan_.tp} * plan_.cp * plan_.pp;
    const std::int64_t used = replica * plan_.dp;
    if (used == gpus_) return;
    report("gpus", "tp x cp x pp x dp must equal the number of GPUs",
           fmt::format("{} = {}, GPUs = {}", ranks(), used, gpus_), other_ranks(replica, used));
  }

  std::vector<ValueSearch> other_ranks(std::int64_t replica, std::int64_t used) const {
    std::vector<ValueSearch> remedies;
    if (gpus_ % replica == 0) remedies.push_back(exactly("dp", gpus_ / replica));
    for (const auto& [field, degree] :
         {std::pair("pp", plan_.pp), std::pair("tp", plan_.tp), std::pair("cp", plan_.cp)}) {
      const std::int64_t others = replica / degree;
      if (degree > 1)
        remedies.push_back(numbers_near(
            field, degree, gpus_, [all = gpus_, others](std::int64_t n) { return all % (others * n) == 0; }));
    }
    remedies.push_back(multiples_near("gpus", gpus_, kMaxRanks, replica));
    remedies.push_back(exactly("gpus", used));
    return remedies;
  }

  void batch() {
    const std::int64_t unit = plan_.micro_batch * plan_.dp;
    if (plan_.global_batch % unit == 0) return;
    std::vector<ValueSearch> remedies = {
        multiples_near("global_batch", plan_.global_batch, kMaxSequences, unit)};
    if (plan_.micro_batch > 1)
      remedies.push_back(numbers_near(
          "micro_batch", plan_.micro_batch, plan_.global_batch,
          [batch = plan_.global_batch, dp = plan_.dp](std::int64_t n) { return batch % (n * dp) == 0; }));
    report("global_batch", "the global batch must be a multiple of micro batch x dp",
           fmt::format("global batch = {}, micro batch {} x dp {} = {}", plan_.global_batch,
                       plan_.micro_batch, plan_.dp, unit),
           std::move(remedies));
  }

  // Reports a rule once for all the shapes that break it.
  void divides_tp(const std::string& what, const std::vector<std::int64_t>& values) {
    for (const std::int64_t value : values) {
      if (value % plan_.tp == 0) continue;
      report("tp", fmt::format("tp must divide the {}", what),
             fmt::format("{} = {}, tp = {}", what, value, plan_.tp),
             numbers_near("tp", plan_.tp, value, [value](std::int64_t tp) { return value % tp == 0; }));
      return;
    }
  }

  void tensor_split() {
    std::vector<std::int64_t> heads = {model_.heads}, widths = {model_.ffn_hidden};
    for (const LayerShape& shape : model_.shapes) {
      heads.push_back(shape.heads);
      widths.push_back(shape.ffn_hidden);
    }
    divides_tp("attention heads", heads);
    divides_tp("hidden size", {model_.hidden});
    divides_tp("FFN hidden size", widths);
    share_kv_heads(model_.own_shape());
    for (const LayerShape& shape : model_.shapes)
      if (shape.kv_heads != model_.kv_heads) return share_kv_heads(shape);
  }

  void share_kv_heads(const LayerShape& shape) {
    const auto legal = [heads = shape.kv_heads](std::int64_t tp) {
      return heads % tp == 0 || tp % heads == 0;
    };
    if (legal(plan_.tp)) return;
    report("tp", "tp must divide the kv heads or be a multiple of them",
           fmt::format("kv heads = {}, tp = {}", shape.kv_heads, plan_.tp),
           numbers_near("tp", plan_.tp, shape.heads, legal));
  }

  void layer_split() {
    if (!plan_.layers_per_stage.empty()) return listed_layers();
    const std::int64_t stages = std::int64_t{plan_.pp} * plan_.vpp;
    if (model_.layers % stages == 0) return;
    const auto divides_with = [layers = model_.layers](std::int64_t degree) {
      return [layers, degree](std::int64_t n) { return layers % (degree * n) == 0; };
    };
    report("pp", "the layers must divide evenly over pp x vpp stages (or give layers per stage)",
           fmt::format("layers = {}, pp {} x vpp {} = {}", model_.layers, plan_.pp, plan_.vpp, stages),
           std::vector{numbers_near("pp", plan_.pp, model_.layers, divides_with(plan_.vpp)),
                       numbers_near("vpp", plan_.vpp, model_.layers, divides_with(plan_.pp))});
  }

  void listed_layers() {
    const std::vector<int>& listed = plan_.layers_per_stage;
    const std::int64_t stages = std::int64_t{plan_.pp} * plan_.vpp;
    if (static_cast<std::int64_t>(listed.size()) != stages) {
      report("layers_per_stage", "there must be one entry for each of the pp x vpp stages",
             fmt::format("{} entries, pp {} x vpp {} = {}", listed.size(), plan_.pp, plan_.vpp, stages),
             stages_of(static_cast<std::int64_t>(listed.size())));
    }
    const std::int64_t sum = std::accumulate(listed.begin(), listed.end(), std::int64_t{0});
    const bool negative = std::any_of(listed.begin(), listed.end(), [](int layers) { return layers < 0; });
    if (sum != model_.layers || negative) {
      report("layers_per_stage", "the layers per stage must be 0 or more and add up to the model's layers",
             fmt::format("{} add up to {}, layers = {}", fmt::join(listed, ","), sum, model_.layers), "");
    }
  }

  std::vector<ValueSearch> stages_of(std::int64_t entries) const {
    std::vector<ValueSearch> remedies;
    if (entries > 0 && entries % plan_.vpp == 0) remedies.push_back(exactly("pp", entries / plan_.vpp));
    if (entries > 0 && entries % plan_.pp == 0) remedies.push_back(exactly("vpp", entries / plan_.pp));
    return remedies;
  }

  void further_tokens() {
    if (model_.mtp_layers == 0 || traits(plan_).predicts_tokens) return;
    report("mtp_num_layers", "multi-token prediction (MTP) needs framework megatron-core",
           fmt::format("mtp_num_layers = {}, framework = {}", model_.mtp_layers, to_string(plan_.framework)),
           "0, or framework = megatron-core");
  }

  void sequence() {
    if (model_.positions == Positions::learned && plan_.seq > model_.max_positions) {
      report("seq", "the sequence is longer than the model's learned positions",
             fmt::format("seq = {}, positions = {}", plan_.seq, model_.max_positions),
             std::to_string(model_.max_positions));
    }
  }

  void size() {
    if (plan_.global_batch / (plan_.micro_batch * plan_.dp) <= kMaxStageMicrobatches / plan_.stages()) return;
    report("global_batch",
           fmt::format("a schedule holds at most {} stages x microbatches", kMaxStageMicrobatches),
           fmt::format("{} stages x {} microbatches", plan_.stages(), plan_.microbatches()),
           std::to_string(kMaxStageMicrobatches / plan_.stages() * plan_.micro_batch * plan_.dp));
  }

  const Plan& plan_;
  const Model& model_;
  std::int64_t gpus_;
  std::vector<BrokenRule> violations_;
};

}  // namespace

std::vector<BrokenRule> unmet_rules(const Plan& plan, const Model& model, std::int64_t gpus) {
  return Rules(plan, model, gpus).broken();
}

std::vector<Violation> broken_rules(const Plan& plan, const Model& model, std::int64_t gpus) {
  return as_violations(unmet_rules(plan, model, gpus));
}

}  // namespace rehearse
