#include "cli/published_model.h"

#include <algorithm>

namespace rehearse {

namespace {

template <typename T>
T said_or(const Json& object, const char* key, T otherwise) {
  return object.contains(key) && !object.at(key).is_null() ? object.at(key).get<T>() : otherwise;
}

// The first word of what the row says, which must be one of them; a remark may follow.
std::string first_word(const Json& row, const char* key, const std::vector<std::string>& words) {
  const std::string text = said_or<std::string>(row, key, words.front());
  for (const std::string& word : words)
    if (text == word || text.starts_with(word + " ")) return word;
  throw InputError({"", std::string("/model/") + key, "must be one of " + join(words),
                    "found \"" + text + "\"", nearest_name(text, words)});
}

void add_gpt2(Model& model, const Json& row, const Json& practice) {
  model.norm = Norm::layer;
  model.gated_mlp = false;
  const bool nemotron = first_word(row, "activation", {"gelu", "squared relu"}) == "squared relu";
  model.squared_relu = nemotron;
  const bool biases = !nemotron && practice.value("biases", true);
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = biases;
  if (nemotron) return;
  model.positions = Positions::learned;
  if (first_word(row, "pos", {"learned", "ALiBi"}) == "ALiBi") model.positions = Positions::alibi;
}

void add_experts(Model& model, const Json& row) {
  if (said_or<std::int64_t>(row, "experts", 0) == 0) return;
  Experts experts;
  experts.count = row.at("experts");
  experts.per_token = row.at("experts_per_token");
  experts.ffn_hidden = said_or(row, "moe_ffn", model.ffn_hidden);
  experts.shared_ffn_hidden = said_or<std::int64_t>(row, "shared_ffn", 0);
  experts.first_layer = said_or<std::int64_t>(row, "dense_layers", 0);
  model.experts = experts;
}

// gpt-oss: biases everywhere, experts within limits, sinks, and windows in every other layer.
void add_gpt_oss(Model& model, const Json& row) {
  if (!said_or(row, "gpt_oss", false)) return;
  model.qkv_bias = model.attention_out_bias = model.attention_sinks = model.yarn = true;
  model.experts->linear_bias = model.experts->clamped = true;
  model.window = row.at("window");
  model.full_every = 2;
}

// Nemotron-H and Nemotron 3: a layer each of a state space, attention, an MLP or experts.
void add_hybrid(Model& model, const Json& row) {
  model.pattern = said_or<std::string>(row, "hybrid_pattern", "");
  if (model.pattern.empty()) return;
  model.norm = Norm::rms;
  model.positions = Positions::none;
  model.gated_mlp = model.qkv_bias = model.attention_out_bias = model.mlp_bias = false;
  model.squared_relu = true;
  StateSpace space;
  space.heads = row.at("mamba_heads");
  space.head_dim = row.at("mamba_head_dim");
  space.groups = row.at("mamba_groups");
  space.state = row.at("mamba_state");
  space.convolution = said_or(row, "mamba_conv", space.convolution);
  space.chunk = said_or(row, "mamba_chunk", space.chunk);
  model.state_space = space;
  model.mtp_pattern = said_or<std::string>(row, "mtp_pattern", "");
  model.mtp_repeated = said_or(row, "mtp_repeated", false);
  if (!model.experts) return;
  model.experts->router_bias = true;
  model.experts->latent = said_or<std::int64_t>(row, "moe_latent", 0);
}

// The rows name no ranks: those of DeepSeek-V2 and V3, which are equal (config.json of both).
void add_latent(Model& model, const Json& row) {
  if (!said_or(row, "mla", false)) return;
  LatentAttention latent;
  latent.q_rank = 1536;
  latent.kv_rank = 512;
  latent.nope_head_dim = 128;
  latent.rope_head_dim = 64;
  latent.v_head_dim = 128;
  model.latent = latent;
}

bool assumes_vocabulary(const Json& run) {
  return std::ranges::count(said_or(run, "missing", Json::array()), Json("vocab")) > 0;
}

bool pads_vocabulary(const Json& practice) {
  const Json plan = practice.value("plan", Json::object());
  const std::string framework = plan.value("framework", "megatron");
  return framework.starts_with("megatron");
}

// Rows of the table on all ranks of tensor parallelism. Megatron-LM pads it until each has a multiple of 128
// (--make-vocab-size-divisible-by).
std::int64_t vocabulary(const Json& run, const Json& practice) {
  const Json& row = run.at("model");
  const std::int64_t tp = std::max<std::int64_t>(1, said_or<std::int64_t>(run.at("parallel"), "tp", 1));
  if (practice.contains("vocab") && assumes_vocabulary(run))
    return practice.at("vocab").get<std::int64_t>() / tp * tp;
  const std::int64_t said = row.at("vocab"), multiple = pads_vocabulary(practice) ? 128 * tp : 1;
  return (said + multiple - 1) / multiple * multiple;
}

}  // namespace

Model published_model(const Json& run, const Json& practice) {
  const Json& row = run.at("model");
  Model model;
  model.name = row.at("name");
  model.layers = row.at("layers");
  model.hidden = row.at("hidden");
  model.heads = row.at("heads");
  model.kv_heads = said_or(row, "kv_heads", model.heads);
  model.head_dim = said_or(row, "head_dim", model.heads > 0 ? model.hidden / model.heads : 0);
  model.ffn_hidden = said_or(row, "ffn_hidden", 4 * model.hidden);
  model.vocab = vocabulary(run, practice);
  model.max_positions = row.at("seq_len");
  model.dropout = practice.value("dropout", false);
  if (!said_or(row, "gated_mlp", true)) add_gpt2(model, row, practice);
  model.tied_embeddings = said_or(row, "tied_embeddings", practice.value("tied", !model.gated_mlp));
  add_experts(model, row);
  add_latent(model, row);
  add_gpt_oss(model, row);
  add_hybrid(model, row);
  model.mtp_layers = said_or<std::int64_t>(row, "mtp_layers", 0);
  require_valid(model, model.name);
  return model;
}

}  // namespace rehearse
