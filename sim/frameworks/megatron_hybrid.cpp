#include "frameworks/megatron_hybrid.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace rehearse {

namespace {

constexpr const char* kPattern = "--hybrid-layer-pattern";
constexpr const char* kOlder = "--hybrid-override-pattern";
constexpr const char* kOfModule = "--mtp-hybrid-override-pattern";

std::vector<std::string> split(const std::string& text, char border) {
  std::vector<std::string> parts(1);
  for (const char letter : text)
    letter == border ? parts.emplace_back() : parts.back() += std::string(1, letter);
  return parts;
}

void require_letters(const MegatronFlags& flags, const char* flag, const std::string& letters) {
  const std::size_t unknown = letters.find_first_not_of("M*-E");
  if (unknown == std::string::npos && !letters.empty()) return;
  flags.fail(flag,
             letters.empty() ? "has no layer"
                             : fmt::format("the layer {} is not supported", letters.substr(unknown, 1)),
             "M (Mamba), * (attention), - (MLP) and E (experts)");
}

Json state_space(const MegatronFlags& flags) {
  const std::int64_t head_dim = flags.integer_or("--mamba-head-dim", 64);
  if (head_dim < 1) flags.fail("--mamba-head-dim", "must be above 0");
  return {{"mamba_head_dim", head_dim},
          {"mamba_num_heads",
           flags.integer_or("--mamba-num-heads", 2 * flags.integer("--hidden-size") / head_dim)},
          {"n_groups", flags.integer_or("--mamba-num-groups", 8)},
          {"ssm_state_size", flags.integer_or("--mamba-state-dim", 128)}};
}

Json experts(const MegatronFlags& flags, std::int64_t ffn) {
  const std::int64_t shared = flags.integer_or("--moe-shared-expert-intermediate-size", 0);
  Json config = {{"n_routed_experts", flags.integer("--num-experts")},
                 {"num_experts_per_tok", flags.integer_or("--moe-router-topk", 2)},
                 {"moe_intermediate_size", flags.integer_or("--moe-ffn-hidden-size", ffn)},
                 {"n_shared_experts", shared > 0 ? 1 : 0}};
  if (shared > 0) config["moe_shared_expert_intermediate_size"] = shared;
  if (flags.has("--moe-latent-size")) config["moe_latent_size"] = flags.integer("--moe-latent-size");
  return config;
}

void note_what_differs(const MegatronFlags& flags, std::vector<std::string>& notes) {
  if (!flags.has("--squared-relu")) notes.push_back("MLPs of a hybrid model are modelled with squared ReLU");
  if (flags.text_or("--normalization", "LayerNorm") == "LayerNorm")
    notes.push_back("a hybrid model is modelled with RMSNorm");
  if (flags.text_or("--position-embedding-type", "learned_absolute") != "none")
    notes.push_back("a hybrid model is modelled without position embeddings");
  if (!flags.has("--disable-bias-linear")) notes.push_back("a hybrid model is modelled without biases");
}

}  // namespace

std::optional<HybridPattern> hybrid_pattern(const MegatronFlags& flags) {
  const char* flag = flags.has(kPattern) ? kPattern : kOlder;
  if (!flags.has(flag)) return {};
  const std::vector<std::string> parts = split(flags.text(flag), '/');
  HybridPattern pattern;
  const std::vector<std::string> stages = split(parts.front(), '|');
  for (const std::string& stage : stages) {
    pattern.layers += stage;
    if (stages.size() > 1) pattern.stages.push_back(static_cast<int>(stage.size()));
  }
  require_letters(flags, flag, pattern.layers);
  pattern.modules = static_cast<std::int64_t>(parts.size()) - 1;
  if (pattern.modules > 0) pattern.module = parts[1];
  if (std::any_of(parts.begin() + 1, parts.end(), [&](const auto& part) { return part != pattern.module; }))
    flags.fail(flag, "all MTP layers must be the same", "M*M*/*E/*E");
  if (flags.has(kOfModule) && pattern.modules == 0) {
    pattern.module = flags.text(kOfModule);
    pattern.modules = flags.integer_or("--mtp-num-layers", 0);
  }
  if (pattern.modules > 0) require_letters(flags, flags.has(kOfModule) ? kOfModule : flag, pattern.module);
  return pattern;
}

Json hybrid_model(const MegatronFlags& flags, const HybridPattern& pattern, std::vector<std::string>& notes) {
  note_what_differs(flags, notes);
  const std::int64_t hidden = flags.integer("--hidden-size"), heads = flags.integer("--num-attention-heads");
  const std::int64_t ffn = flags.integer_or("--ffn-hidden-size", 4 * hidden);
  Json config = {{"model_type", "nemotron_h"},
                 {"hybrid_override_pattern", pattern.layers},
                 {"num_hidden_layers", pattern.layers.size()},
                 {"hidden_size", hidden},
                 {"intermediate_size", ffn},
                 {"num_attention_heads", heads},
                 {"num_key_value_heads",
                  flags.has("--group-query-attention") ? flags.integer("--num-query-groups") : heads},
                 {"max_position_embeddings", flags.integer("--max-position-embeddings")}};
  if (flags.has("--kv-channels")) config["head_dim"] = flags.integer("--kv-channels");
  const std::string all = pattern.layers + pattern.module;
  if (all.find('M') != std::string::npos) config.update(state_space(flags));
  if (all.find('E') != std::string::npos) config.update(experts(flags, ffn));
  if (pattern.modules > 0) {
    config["num_nextn_predict_layers"] = pattern.modules;
    config["mtp_hybrid_override_pattern"] = pattern.module;
    config["mtp_use_repeated_layer"] = flags.has("--mtp-use-repeated-layer");
  }
  return config;
}

}  // namespace rehearse
