#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "model/bounds.h"
#include "model/model.h"

namespace rehearse {

namespace {

class Rules {
 public:
  explicit Rules(const std::string& file) : file_(file) {}

  void within(const std::string& field, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value >= least && value <= most) return;
    broken_.push_back({file_, "", fmt::format("{} must be from {} to {}", field, least, most),
                       fmt::format("{} = {}", field, value),
                       fmt::format("{}", std::clamp(value, least, most))});
  }

  void holds(bool condition, const std::string& rule, const std::string& values,
             const std::string& nearest = "") {
    if (!condition) broken_.push_back({file_, "", rule, values, nearest});
  }

  bool all_hold() const { return broken_.empty(); }
  void throw_if_broken() const {
    if (!broken_.empty()) throw InputError(broken_);
  }

 private:
  std::string file_;
  std::vector<Violation> broken_;
};

void check_shape(Rules& rules, const Model& model) {
  rules.within("layers", model.layers, 1, bounds::kLayers);
  rules.within("hidden", model.hidden, 1, bounds::kHidden);
  rules.within("heads", model.heads, 1, bounds::kHeads);
  rules.within("kv_heads", model.kv_heads, 1, bounds::kHeads);
  rules.within("head_dim", model.head_dim, 1, bounds::kHeadDim);
  rules.within("ffn_hidden", model.ffn_hidden, 1, bounds::kFfnHidden);
  rules.within("vocab", model.vocab, 1, bounds::kVocab);
  const bool needs_table = model.positions == Positions::learned;
  rules.within("max_positions", model.max_positions, needs_table ? 1 : 0, bounds::kPositions);
  rules.within("window", model.window, 0, bounds::kPositions);
  rules.within("step of layers without a window", model.full_every, 0, bounds::kLayers);
  rules.within("modules of multi-token prediction", model.mtp_layers, 0, bounds::kMtpLayers);
}

void check_experts(Rules& rules, const Experts& experts) {
  rules.within("experts", experts.count, 1, bounds::kExperts);
  rules.within("experts per token", experts.per_token, 1, std::max<std::int64_t>(1, experts.count));
  rules.within("expert ffn_hidden", experts.ffn_hidden, 1, bounds::kExpertFfnHidden);
  rules.within("shared expert ffn_hidden", experts.shared_ffn_hidden, 0, bounds::kFfnHidden);
  rules.within("first sparse layer", experts.first_layer, 0, bounds::kLayers);
  rules.within("step of sparse layers", experts.every, 1, bounds::kLayers);
}

void check_latent(Rules& rules, const LatentAttention& latent) {
  rules.within("query rank", latent.q_rank, 0, bounds::kLatentRank);
  rules.within("key and value rank", latent.kv_rank, 1, bounds::kLatentRank);
  rules.within("nope head_dim", latent.nope_head_dim, 1, bounds::kHeadDim);
  rules.within("rope head_dim", latent.rope_head_dim, 1, bounds::kHeadDim);
  rules.within("value head_dim", latent.v_head_dim, 1, bounds::kHeadDim);
}

}  // namespace

void require_valid(const Model& model, const std::string& file) {
  Rules rules(file);
  check_shape(rules, model);
  if (model.experts) check_experts(rules, *model.experts);
  if (model.latent) check_latent(rules, *model.latent);
  if (rules.all_hold()) {
    rules.holds(model.heads % model.kv_heads == 0, "heads must be a multiple of kv_heads",
                fmt::format("heads = {}, kv_heads = {}", model.heads, model.kv_heads),
                "kv_heads = " + nearest_divisors(model.heads, model.kv_heads));
  }
  rules.throw_if_broken();
}

}  // namespace rehearse
