#include "frameworks/megatron_hybrid.h"

#include <fmt/core.h>

#include <algorithm>

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

void add_state_space(const MegatronFlags& flags, Json& config) {
  const std::int64_t head_dim = flags.integer_or("--mamba-head-dim", 64);
  if (head_dim < 1) flags.fail("--mamba-head-dim", "must be above 0");
  config["mamba_head_dim"] = head_dim;
  config["mamba_num_heads"] =
      flags.integer_or("--mamba-num-heads", 2 * flags.integer("--hidden-size") / head_dim);
  config["n_groups"] = flags.integer_or("--mamba-num-groups", 8);
  config["ssm_state_size"] = flags.integer_or("--mamba-state-dim", 128);
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

// megatron/training/arguments.py, validate_args: Megatron-LM warns, and takes the layers of the pattern.
void add_hybrid(const MegatronFlags& flags, const HybridPattern& pattern, Json& config,
                std::vector<std::string>& notes) {
  const auto layers = static_cast<std::int64_t>(pattern.layers.size());
  if (const std::int64_t other = flags.integer_or("--num-layers", layers); other != layers)
    notes.push_back(fmt::format("--num-layers {} is ignored: the pattern has {} layers", other, layers));
  config["hybrid_override_pattern"] = pattern.layers;
  if ((pattern.layers + pattern.module).find('M') != std::string::npos) add_state_space(flags, config);
  if (pattern.modules == 0) return;
  config["num_nextn_predict_layers"] = pattern.modules;
  config["mtp_hybrid_override_pattern"] = pattern.module;
  config["mtp_use_repeated_layer"] = flags.has("--mtp-use-repeated-layer");
}

}  // namespace rehearse
