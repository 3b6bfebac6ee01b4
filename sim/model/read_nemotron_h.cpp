#include <fmt/core.h>

#include <map>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

// A letter for each layer; newer files of transformers have a name instead.
std::string read_pattern(const JsonReader& config, const std::string& letters, const std::string& names) {
  if (config.has(letters) || !config.has(names)) return config.text(letters);
  const std::map<std::string, char> known = {{"mamba", 'M'}, {"attention", '*'}, {"mlp", '-'}, {"moe", 'E'}};
  const Json& types = config.value(names);
  if (!types.is_array()) config.fail(names, "must be an array of layer types", "found " + types.dump());
  std::string pattern;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto found = types[i].is_string() ? known.find(types[i].get<std::string>()) : known.end();
    if (found == known.end())
      config.fail(fmt::format("{}/{}", names, i), "must be mamba, attention, mlp or moe",
                  "found " + types[i].dump(), "mamba");
    pattern += found->second;
  }
  return pattern;
}

StateSpace read_state_space(const JsonReader& config) {
  StateSpace space;
  space.heads = config.integer("mamba_num_heads", 1, bounds::kHeads);
  space.head_dim = config.integer("mamba_head_dim", 1, bounds::kHeadDim);
  space.groups = config.integer_or("n_groups", 8, 1, bounds::kHeads);
  space.state = config.integer_or("ssm_state_size", 128, 1, bounds::kState);
  space.convolution = config.integer_or("conv_kernel", 4, 1, bounds::kConvolution);
  space.chunk = config.integer_or("chunk_size", 128, 1, bounds::kChunk);
  return space;
}

// A bias on the router balances the experts, as in DeepSeek-V3.
Experts read_latent_experts(const JsonReader& config) {
  Experts experts;
  experts.count = config.integer("n_routed_experts", 1, bounds::kExperts);
  experts.per_token = config.integer("num_experts_per_tok", 1, experts.count);
  experts.ffn_hidden = config.integer("moe_intermediate_size", 1, bounds::kExpertFfnHidden);
  const std::int64_t shared = config.integer_or("n_shared_experts", 1, 0, 16);
  experts.shared_ffn_hidden = shared == 0 ? 0
                                          : shared * config.integer("moe_shared_expert_intermediate_size", 1,
                                                                    bounds::kExpertFfnHidden);
  experts.latent = config.integer_or("moe_latent_size", 0, 0, bounds::kHidden);
  experts.router_bias = true;
  return experts;
}

// Notes biases of projections that have no kernels here: those of the state space and of MLPs.
void note_biases(const JsonReader& config, Model& model) {
  for (const char* key : {"use_bias", "mamba_proj_bias", "mlp_bias", "attention_bias"})
    if (config.boolean_or(key, false)) model.not_modelled.emplace_back(key);
  if (!config.boolean_or("use_conv_bias", true)) model.not_modelled.emplace_back("use_conv_bias");
}

}  // namespace

void read_hybrid(const JsonReader& config, Model& model) {
  model.pattern = read_pattern(config, "hybrid_override_pattern", "layers_block_type");
  model.mtp_layers = config.integer_or("num_nextn_predict_layers", 0, 0, bounds::kMtpLayers);
  if (model.mtp_layers > 0) {
    model.mtp_pattern = read_pattern(config, "mtp_hybrid_override_pattern", "mtp_layers_block_type");
    model.mtp_repeated = config.boolean_or("mtp_use_repeated_layer", true);
  }
  if ((model.pattern + model.mtp_pattern).find('M') != std::string::npos)
    model.state_space = read_state_space(config);
}

// NVIDIA 2025, Nemotron-H, section 2.1: no positions, squared ReLU. Experts and MTP layers exist since
// Nemotron 3.
Model read_nemotron_h(const FamilyConfig& family) {
  const JsonReader& config = family.file();
  Model model;
  read_shape(family, model);
  model.yarn = is_yarn(config);
  model.head_dim = config.integer_or("attention_head_dim", model.head_dim, 1, bounds::kHeadDim);
  model.positions = Positions::none;
  model.gated_mlp = false;
  model.squared_relu = true;
  if (const std::string act = config.text_or("mlp_hidden_act", "relu2"); act != "relu2")
    config.fail("mlp_hidden_act", "must be relu2", fmt::format("found \"{}\"", act), "relu2");
  read_hybrid(config, model);
  const std::string all = model.pattern + model.mtp_pattern;
  if (all.find('E') != std::string::npos) model.experts = read_latent_experts(config);
  note_biases(config, model);
  return model;
}

}  // namespace rehearse
