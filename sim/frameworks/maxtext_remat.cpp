// Source: AI-Hypercomputer/maxtext e591f30c, layers/decoders.py (get_remat_policy), configs/base.yml.
#include "frameworks/maxtext_remat.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace rehearse {

namespace {

// Tensors that are kept besides the input of the layer. Fused projections have the names of their parts.
// `is_offloaded`: they are kept in the host's memory.
struct RematPolicy {
  const char* name;
  const char* kept;
  bool is_offloaded = false;
};
constexpr const char* kProjections = "qkv out_proj mlpwi mlpwo";
constexpr const char* kWithContext = "qkv context out_proj mlpwi mlpwo";
constexpr const char* kCustom = "custom";
constexpr std::array kPolicies = {RematPolicy{"full", ""},
                                  RematPolicy{"minimal", kProjections},
                                  RematPolicy{"minimal_with_context", kWithContext},
                                  RematPolicy{"minimal_flash", kWithContext},
                                  RematPolicy{"minimal_with_quantization", kProjections},
                                  RematPolicy{"minimal_with_context_and_quantization", kWithContext},
                                  RematPolicy{"save_dot_with_context_except_mlp", "qkv context out_proj"},
                                  RematPolicy{"save_dot_except_mlpwi", "qkv out_proj mlpwo"},
                                  RematPolicy{"save_dot_except_mlp", "qkv out_proj"},
                                  RematPolicy{"save_qkv_proj", "qkv"},
                                  RematPolicy{"save_out_proj", "out_proj"},
                                  RematPolicy{"qkv_proj_offloaded", "qkv", true},
                                  RematPolicy{"minimal_offloaded", kProjections, true},
                                  RematPolicy{kCustom, ""}};

struct Kept {
  std::set<std::string> tensors;
  bool is_offloaded = false;
};

// Keys of the policy "custom", by the tensor that they name.
constexpr std::array<std::pair<const char*, const char*>, 12> kTensorKeys = {{{"query_proj", "qkv"},
                                                                              {"key_proj", "qkv"},
                                                                              {"value_proj", "qkv"},
                                                                              {"qkv_proj", "qkv"},
                                                                              {"kv_proj", "qkv"},
                                                                              {"context", "context"},
                                                                              {"out_proj", "out_proj"},
                                                                              {"mlpwi", "mlpwi"},
                                                                              {"mlpwi_0", "mlpwi"},
                                                                              {"mlpwi_1", "mlpwi"},
                                                                              {"mlpwo", "mlpwo"},
                                                                              {"moe_mlpwi", "mlpwi"}}};

Kept kept_by_keys(PlanYaml& from, bool counts) {
  Kept kept;
  for (const auto& [key, tensor] : kTensorKeys) {
    const std::string place =
        from.choice(key, {{"remat", "remat"}, {"device", "device"}, {"offload", "offload"}}, "remat");
    if (!counts || place == "remat") continue;
    kept.tensors.insert(tensor);
    kept.is_offloaded = kept.is_offloaded || place == "offload";
  }
  return kept;
}

// Selective recompute keeps the outputs of all GEMMs but those of the modules that it names, and the plan has
// no finer choice: `differs` names the rest.
std::string add_modules(const Kept& kept, bool has_experts, Json& plan) {
  const auto keeps = [&](const char* tensor) { return kept.tensors.contains(tensor); };
  plan["recompute"] = "full";
  if (!keeps("qkv"))
    return kept.tensors.empty() ? "" : "the whole layer is counted as recomputed, which takes more time";
  plan["recompute"] = "selective";
  std::vector<std::string> modules = {"layernorm"};
  if (!keeps("context")) modules.emplace_back("core_attn");
  if (!keeps("mlpwi")) modules.emplace_back(has_experts ? "moe" : "mlp");
  plan["recompute_modules"] = join(modules, ",");
  if (!keeps("out_proj"))
    return "the output projection of attention is counted as kept: more memory, and a faster step";
  if (keeps("mlpwo") && !keeps("mlpwi"))
    return "the output of the MLP is counted as recomputed: less memory, and a slower step";
  return keeps("mlpwi") ? "outputs of activation functions are counted as kept, which takes more memory" : "";
}

}  // namespace

void add_remat_policy(PlanYaml& from, bool has_experts, Json& plan) {
  const char* const key = "remat_policy";
  std::map<std::string, std::string> names;
  for (const RematPolicy& policy : kPolicies) names[policy.name] = policy.name;
  const std::string name = from.choice(key, names, "full");
  const RematPolicy policy =
      *std::ranges::find(kPolicies, name, [](const RematPolicy& each) { return std::string(each.name); });
  Kept kept = kept_by_keys(from, name == kCustom);
  if (name != kCustom) kept = {keys_of(policy.kept), policy.is_offloaded};
  const std::string differs = add_modules(kept, has_experts, plan);
  if (!differs.empty()) from.note(key, fmt::format("{} is approximated: {}", name, differs));
  if (kept.is_offloaded)
    from.note(key, name + " is approximated: tensors on the host are counted on the GPU, without copies",
              "less memory, more time");
}

}  // namespace rehearse
