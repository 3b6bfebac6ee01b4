#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

Model read_mixtral(const JsonReader& config) {
  Model model = read_decoder(config, AbsentKvHeads::error);
  model.window = config.integer_or("sliding_window", 0, 1, bounds::kPositions);
  Experts experts;
  experts.count = config.integer("num_local_experts", 1, bounds::kExperts);
  experts.per_token = config.integer("num_experts_per_tok", 1, experts.count);
  experts.ffn_hidden = config.integer("intermediate_size", 1, bounds::kExpertFfnHidden);
  model.experts = experts;
  return model;
}

namespace {

// mlp_only_layers names the layers without experts; only a run from the first layer on has a place in
// Experts.
std::int64_t first_sparse_layer(const JsonReader& config) {
  if (!config.has("mlp_only_layers")) return 0;
  const Json& dense = config.value("mlp_only_layers");
  std::int64_t expected = 0;
  if (!dense.is_array())
    config.fail("mlp_only_layers", "must be an array of layers", "found " + dense.dump());
  for (const Json& layer : dense) {
    if (layer != expected) {
      config.fail("mlp_only_layers", "must be the first layers in order", "found " + dense.dump());
    }
    ++expected;
  }
  return expected;
}

}  // namespace

Model read_qwen3_moe(const JsonReader& config) {
  Model model = read_qwen3(config);
  // Newer files of transformers say num_local_experts.
  const bool newer = !config.has("num_experts") && config.has("num_local_experts");
  Experts experts;
  experts.count = config.integer(newer ? "num_local_experts" : "num_experts", 1, bounds::kExperts);
  experts.per_token = config.integer("num_experts_per_tok", 1, experts.count);
  experts.ffn_hidden = config.integer("moe_intermediate_size", 1, bounds::kExpertFfnHidden);
  experts.every = config.integer_or("decoder_sparse_step", 1, 1, bounds::kLayers);
  experts.first_layer = first_sparse_layer(config);
  model.experts = experts;
  return model;
}

}  // namespace rehearse
