// The rules of a legal plan; each adds the violations that it finds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "plan/graphs.h"
#include "plan/nearest.h"
#include "plan/plan.h"
#include "plan/rules.h"
#include "plan/rules_blocking.h"
#include "plan/rules_recipe.h"
#include "plan/rules_recompute.h"
#include "plan/rules_split.h"
#include "plan/rules_zero.h"

namespace rehearse {

namespace {

// A schedule's lists hold an entry for every stage and microbatch: beyond this they would not fit in memory.
constexpr std::int64_t kMostStageMicrobatches = 20'000'000;

// Far beyond any machine, and small enough that products of ranks and sequences stay within 64 bits.
constexpr std::int64_t kMostDegree = 1 << 20;
constexpr std::int64_t kMostRanks = 1 << 30;
constexpr std::int64_t kMostSequences = std::int64_t{1} << 32;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;

class Rules {
 public:
  Rules(const Plan& plan, const Model& model, std::int64_t gpus) : plan_(plan), model_(model), gpus_(gpus) {}

  std::vector<Violation> broken() {
    degrees();
    if (!violations_.empty()) return violations_;  // the others divide by these
    product();
    batch();
    tensor_split();
    layer_split();
    add_pipeline_violations(plan_, violations_);
    further_tokens();
    sequence();
    size();
    add_zero_violations(plan_, model_, violations_);
    add_expert_rules(plan_, model_, violations_);
    add_context_rules(plan_, model_, violations_);
    add_hybrid_rules(plan_, model_, violations_);
    add_recompute_rules(plan_, model_, violations_);
    add_recipe_rules(plan_, violations_);
    add_blocking_rules(plan_, violations_);
    add_graph_rules(plan_, model_, violations_);
    return violations_;
  }

 private:
  void report(const std::string& field, std::string rule, std::string values, std::string nearest) {
    violations_.push_back({"", field, std::move(rule), std::move(values), std::move(nearest)});
  }

  void in_range(const std::string& field, std::int64_t value, std::int64_t most) {
    if (value >= 1 && value <= most) return;
    report(field, fmt::format("must be from 1 to {}", most), fmt::format("found {}", value),
           std::to_string(std::clamp<std::int64_t>(value, 1, most)));
  }

  void degrees() {
    in_range("tp", plan_.tp, kMostDegree);
    in_range("pp", plan_.pp, kMostDegree);
    in_range("vpp", plan_.vpp, kMostDegree);
    in_range("dp", plan_.dp, kMostDegree);
    in_range("micro_batch", plan_.micro_batch, kMostSequences);
    in_range("global_batch", plan_.global_batch, kMostSequences);
    in_range("seq", plan_.seq, kMostTokens);
    if (plan_.micro_batch >= 1 && plan_.seq > kMostTokens / plan_.micro_batch) {
      report("seq", fmt::format("a microbatch holds at most {} tokens", kMostTokens),
             fmt::format("seq {} x micro batch {}", plan_.seq, plan_.micro_batch),
             std::to_string(std::max<std::int64_t>(1, kMostTokens / plan_.micro_batch)));
    }
    in_range("cp", plan_.cp, kMostDegree);
    in_range("ep", plan_.ep, kMostDegree);
    in_range("etp", plan_.etp, kMostDegree);
    if (violations_.empty()) products();
    std::array<Axis, 5> sorted = plan_.order;
    std::sort(sorted.begin(), sorted.end());
    if (sorted != std::array{Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp}) {
      report("order", "must name tp, cp, ep, dp and pp once each", "", "tp-cp-ep-dp-pp");
    }
  }

  // Each degree is in its range.
  void products() {
    const double replica = 1.0 * plan_.tp * plan_.cp * plan_.pp;
    if (replica * plan_.dp > kMostRanks)
      report("gpus", fmt::format("tp x cp x pp x dp must be at most {} ranks", kMostRanks), ranks(),
             replica > kMostRanks ? fmt::format("a product of {}", kMostRanks)
                                  : fmt::format("dp = {}", static_cast<std::int64_t>(kMostRanks / replica)));
    if (1.0 * plan_.pp * plan_.vpp > kMostRanks)
      report("vpp", fmt::format("pp x vpp must be at most {} stages", kMostRanks),
             fmt::format("pp {} x vpp {}", plan_.pp, plan_.vpp), std::to_string(kMostRanks / plan_.pp));
    if (1.0 * plan_.ep * plan_.etp > kMostRanks)
      report("ep", fmt::format("ep x etp must be at most {} ranks", kMostRanks),
             fmt::format("ep {} x etp {}", plan_.ep, plan_.etp), std::to_string(kMostRanks / plan_.etp));
  }

  std::string ranks() const {
    return fmt::format("tp {} x cp {} x pp {} x dp {}", plan_.tp, plan_.cp, plan_.pp, plan_.dp);
  }

  void product() {
    const std::int64_t replica = std::int64_t{plan_.tp} * plan_.cp * plan_.pp;
    const std::int64_t used = replica * plan_.dp;
    if (used == gpus_) return;
    const std::string nearest = gpus_ % replica == 0
                                    ? fmt::format("dp = {}", gpus_ / replica)
                                    : fmt::format("GPUs = {}", nearest_multiples(gpus_, kMostRanks, replica));
    report("gpus", "tp x cp x pp x dp must equal the number of GPUs",
           fmt::format("{} = {}, GPUs = {}", ranks(), used, gpus_), nearest);
  }

  void batch() {
    const std::int64_t unit = plan_.micro_batch * plan_.dp;
    if (plan_.global_batch % unit == 0) return;
    report("global_batch", "the global batch must be a multiple of micro batch x dp",
           fmt::format("global batch = {}, micro batch {} x dp {} = {}", plan_.global_batch,
                       plan_.micro_batch, plan_.dp, unit),
           nearest_multiples(plan_.global_batch, std::int64_t{1} << 40, unit));
  }

  void divides_tp(const std::string& what, std::int64_t value) {
    if (value % plan_.tp == 0) return;
    report("tp", fmt::format("tp must divide the {}", what),
           fmt::format("{} = {}, tp = {}", what, value, plan_.tp),
           nearest_legal(plan_.tp, value, [&](std::int64_t tp) { return value % tp == 0; }));
  }

  void tensor_split() {
    divides_tp("attention heads", model_.heads);
    divides_tp("hidden size", model_.hidden);
    divides_tp("FFN hidden size", model_.ffn_hidden);
    const auto legal = [&](std::int64_t tp) {
      return model_.kv_heads % tp == 0 || tp % model_.kv_heads == 0;
    };
    if (!legal(plan_.tp)) {
      report("tp", "tp must divide the kv heads or be a multiple of them",
             fmt::format("kv heads = {}, tp = {}", model_.kv_heads, plan_.tp),
             nearest_legal(plan_.tp, model_.heads, legal));
    }
  }

  void layer_split() {
    if (!plan_.layers_per_stage.empty()) return listed_layers();
    const std::int64_t stages = std::int64_t{plan_.pp} * plan_.vpp;
    if (model_.layers % stages == 0) return;
    const auto vpp_legal = [&](std::int64_t vpp) { return model_.layers % (plan_.pp * vpp) == 0; };
    const auto pp_legal = [&](std::int64_t pp) { return model_.layers % (pp * plan_.vpp) == 0; };
    report("pp", "the layers must divide evenly over pp x vpp stages (or give layers per stage)",
           fmt::format("layers = {}, pp {} x vpp {} = {}", model_.layers, plan_.pp, plan_.vpp, stages),
           fmt::format("vpp = {} with pp = {}; pp = {} with vpp = {}",
                       nearest_legal(plan_.vpp, model_.layers, vpp_legal), plan_.pp,
                       nearest_legal(plan_.pp, model_.layers, pp_legal), plan_.vpp));
  }

  void listed_layers() {
    const std::vector<int>& listed = plan_.layers_per_stage;
    const std::int64_t stages = std::int64_t{plan_.pp} * plan_.vpp;
    if (static_cast<std::int64_t>(listed.size()) != stages) {
      report("layers_per_stage", "there must be one entry for each of the pp x vpp stages",
             fmt::format("{} entries, pp {} x vpp {} = {}", listed.size(), plan_.pp, plan_.vpp, stages),
             fmt::format("{} entries", stages));
    }
    const std::int64_t sum = std::accumulate(listed.begin(), listed.end(), std::int64_t{0});
    const bool negative = std::any_of(listed.begin(), listed.end(), [](int layers) { return layers < 0; });
    if (sum != model_.layers || negative) {
      report("layers_per_stage", "the layers per stage must be 0 or more and add up to the model's layers",
             fmt::format("{} add up to {}, layers = {}", fmt::join(listed, ","), sum, model_.layers), "");
    }
  }

  void further_tokens() {
    if (model_.mtp_layers == 0 || plan_.framework == Framework::megatron_core) return;
    report("mtp_num_layers", "only Megatron core predicts further tokens",
           fmt::format("mtp_num_layers = {}, framework = {}", model_.mtp_layers, to_string(plan_.framework)),
           "0, or framework megatron-core");
  }

  void sequence() {
    if (model_.positions == Positions::learned && plan_.seq > model_.max_positions) {
      report("seq", "the sequence is longer than the model's learned positions",
             fmt::format("seq = {}, positions = {}", plan_.seq, model_.max_positions),
             std::to_string(model_.max_positions));
    }
  }

  void size() {
    if (plan_.global_batch / (plan_.micro_batch * plan_.dp) <= kMostStageMicrobatches / plan_.stages())
      return;
    report("global_batch",
           fmt::format("a schedule holds at most {} stages x microbatches", kMostStageMicrobatches),
           fmt::format("{} stages x {} microbatches", plan_.stages(), plan_.microbatches()),
           fmt::format("{} microbatches", kMostStageMicrobatches / plan_.stages()));
  }

  const Plan& plan_;
  const Model& model_;
  std::int64_t gpus_;
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> broken_rules(const Plan& plan, const Model& model, std::int64_t gpus) {
  return Rules(plan, model, gpus).broken();
}

}  // namespace rehearse
