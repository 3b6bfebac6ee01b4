#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "frameworks/layer_pattern.h"
#include "frameworks/megatron_flags.h"
#include "frameworks/megatron_hybrid.h"

namespace rehearse {

namespace {

// Vocabularies that tokenizers of Megatron-LM bring with them.
std::int64_t vocabulary(const MegatronFlags& flags) {
  if (flags.has("--padded-vocab-size")) return flags.integer("--padded-vocab-size");
  const std::string tokenizer = flags.text_or("--tokenizer-type", "GPT2BPETokenizer");
  std::int64_t words = flags.integer_or("--vocab-size", 0);
  if (words == 0 && tokenizer == "GPT2BPETokenizer") words = 50257;
  if (words == 0 && tokenizer == "Llama2Tokenizer") words = 32000;
  if (words == 0)
    flags.fail("--vocab-size", fmt::format("must be given: {} does not say how many words it has", tokenizer),
               "--vocab-size 128256");
  const std::int64_t unit =
      std::max<std::int64_t>(1, flags.integer_or("--make-vocab-size-divisible-by", 128)) *
      std::max<std::int64_t>(1, flags.integer_or("--tensor-model-parallel-size", 1));
  return (words + unit - 1) / unit * unit;
}

bool is_rotary(const MegatronFlags& flags) {
  return flags.has("--use-rotary-position-embeddings") ||
         flags.text_or("--position-embedding-type", "learned_absolute") == "rope";
}

Json gpt2(const MegatronFlags& flags) {
  Json config = {{"model_type", "gpt2"},
                 {"activation_function", "gelu"},
                 {"n_layer", flags.integer("--num-layers")},
                 {"n_embd", flags.integer("--hidden-size")},
                 {"n_head", flags.integer("--num-attention-heads")},
                 {"n_positions", flags.integer("--max-position-embeddings")},
                 {"resid_pdrop", flags.number_or("--hidden-dropout", 0.1)},
                 {"embd_pdrop", flags.number_or("--hidden-dropout", 0.1)},
                 {"attn_pdrop", flags.number_or("--attention-dropout", 0.1)}};
  if (flags.has("--ffn-hidden-size")) config["n_inner"] = flags.integer("--ffn-hidden-size");
  return config;
}

// Megatron-LM's own default of a gated network (arguments.py): two thirds of four times the width, by 64.
std::int64_t ffn_hidden(const MegatronFlags& flags) {
  const std::int64_t hidden = flags.integer("--hidden-size");
  const std::int64_t fallback = flags.has("--swiglu") ? hidden * 8 / 3 / 64 * 64 : 4 * hidden;
  return flags.integer_or("--ffn-hidden-size", fallback);
}

Json decoder(const MegatronFlags& flags, const char* model_type) {
  const std::int64_t heads = flags.integer("--num-attention-heads");
  Json config = {{"model_type", model_type},
                 {"num_hidden_layers", flags.integer("--num-layers")},
                 {"hidden_size", flags.integer("--hidden-size")},
                 {"intermediate_size", ffn_hidden(flags)},
                 {"num_attention_heads", heads},
                 {"num_key_value_heads",
                  flags.has("--group-query-attention") ? flags.integer("--num-query-groups") : heads},
                 {"max_position_embeddings", flags.integer("--max-position-embeddings")},
                 {"attention_bias", flags.has("--add-qkv-bias") || !flags.has("--disable-bias-linear")}};
  if (flags.has("--kv-channels")) config["head_dim"] = flags.integer("--kv-channels");
  return config;
}

bool has_experts(const std::vector<bool>& layers, std::int64_t first, std::int64_t step) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto layer = static_cast<std::int64_t>(l);
    if (layers[l] != (layer >= first && (layer + 1) % step == 0)) return false;
  }
  return true;
}

// As far as the family has words for it: dense layers before the others, and in Qwen3's also how many layers
// go by for each with experts.
bool say_layers(const std::vector<bool>& layers, Json& config) {
  const auto first = std::ranges::find(layers, true) - layers.begin();
  const auto second = std::find(layers.begin() + std::min<std::ptrdiff_t>(first + 1, std::ssize(layers)),
                                layers.end(), true) -
                      layers.begin();
  const std::int64_t step = second < std::ssize(layers) ? second - first : 1;
  const std::string type = config.at("model_type");
  if (first == std::ssize(layers) || !has_experts(layers, first, step)) return false;
  const bool is_deepseek = type.starts_with("deepseek");
  if (is_deepseek && step == 1) config["first_k_dense_replace"] = first;
  if (type == "qwen3_moe") config["decoder_sparse_step"] = step;
  if (type == "qwen3_moe")
    for (std::int64_t layer = 0; layer < first; ++layer) config["mlp_only_layers"].push_back(layer);
  return type == "qwen3_moe" || (step == 1 && (is_deepseek || first == 0));
}

void layers_with_experts(const MegatronFlags& flags, Json& config, std::vector<std::string>& notes) {
  const std::string frequency = join(flags.values("--moe-layer-freq"), "");
  const auto layers = layer_pattern(frequency, flags.integer("--num-layers"));
  if (layers && say_layers(*layers, config)) return;
  notes.push_back("--moe-layer-freq " + frequency + " is not modelled: every layer has experts");
}

// Scores that no key has, learned with biases everywhere: gpt-oss.
bool has_sinks(const MegatronFlags& flags) {
  return flags.text_or("--softmax-type", "vanilla") == "learnable";
}

Json mixture(const MegatronFlags& flags, std::vector<std::string>& notes) {
  const std::int64_t width = flags.integer_or("--moe-ffn-hidden-size", ffn_hidden(flags));
  if (width == 0) flags.fail("--moe-ffn-hidden-size", "must be above 0");
  const bool shared = flags.has("--moe-shared-expert-intermediate-size");
  const bool latent = flags.has("--multi-latent-attention");
  const char* of_latent = flags.has("--moe-router-enable-expert-bias") ? "deepseek_v3" : "deepseek_v2";
  const char* of_heads = has_sinks(flags) ? "gpt_oss" : flags.has("--qk-layernorm") ? "qwen3_moe" : "mixtral";
  const char* type = latent ? of_latent : of_heads;
  Json config = decoder(flags, type);
  config["num_experts_per_tok"] = flags.integer_or("--moe-router-topk", 2);
  if (latent) {
    config["n_routed_experts"] = flags.integer("--num-experts");
    config["moe_intermediate_size"] = width;
    if (shared) config["n_shared_experts"] = flags.integer("--moe-shared-expert-intermediate-size") / width;
  } else if (config.at("model_type") == "qwen3_moe") {
    config["num_experts"] = flags.integer("--num-experts");
    config["moe_intermediate_size"] = width;
  } else {
    config["num_local_experts"] = flags.integer("--num-experts");
    config["intermediate_size"] = width;
    if (has_sinks(flags)) config["swiglu_limit"] = flags.number_or("--activation-func-clamp-value", 0);
  }
  if (shared && !latent) notes.push_back("shared experts are modelled with multi-latent attention only");
  if (flags.has("--moe-layer-freq")) layers_with_experts(flags, config, notes);
  return config;
}

void add_latent(const MegatronFlags& flags, Json& config) {
  if (flags.has("--q-lora-rank")) config["q_lora_rank"] = flags.integer("--q-lora-rank");
  config["kv_lora_rank"] = flags.integer_or("--kv-lora-rank", 32);
  config["qk_nope_head_dim"] = flags.integer_or("--qk-head-dim", 128);
  config["qk_rope_head_dim"] = flags.integer_or("--qk-pos-emb-head-dim", 64);
  config["v_head_dim"] = flags.integer_or("--v-head-dim", 128);
  config.erase("attention_bias");
}

// A gated network with RMSNorm is a Llama, one with learned positions a GPT-2, one in between the nearest.
Json dense(const MegatronFlags& flags, std::vector<std::string>& notes) {
  const bool rms = flags.text_or("--normalization", "LayerNorm") == "RMSNorm";
  if (flags.has("--squared-relu")) {
    Json config = decoder(flags, "nemotron");
    config.erase("attention_bias");
    return config;
  }
  if (flags.has("--swiglu")) {
    if (!rms || !is_rotary(flags))
      notes.push_back("a gated network is modelled with RMSNorm and rotary positions");
    Json config = decoder(flags, flags.has("--qk-layernorm") ? "qwen3" : "llama");
    if (config.at("model_type") == "llama") config["mlp_bias"] = !flags.has("--disable-bias-linear");
    return config;
  }
  if (!is_rotary(flags) && !flags.has("--group-query-attention")) {
    if (rms) notes.push_back("a network with learned positions is modelled with LayerNorm");
    return gpt2(flags);
  }
  if (flags.has("--group-query-attention"))
    notes.push_back("query groups without a gated network are modelled as those of a Llama of equal width");
  Json config = decoder(flags, flags.has("--group-query-attention") ? "llama" : "gpt_neox");
  if (config.at("model_type") == "gpt_neox") config["use_parallel_residual"] = false;
  return config;
}

// Every n-th layer looks through no window, or those of a list that say 0.
void add_full_layers(const MegatronFlags& flags, Json& config, std::vector<std::string>& notes) {
  const std::string frequency = join(flags.values("--window-attn-skip-freq"), "");
  const std::int64_t layers = flags.integer("--num-layers");
  std::optional<std::vector<bool>> windows;
  if (frequency.find('[') != std::string::npos) {
    windows = layer_pattern(frequency, layers);
  } else if (const std::int64_t step = flags.integer("--window-attn-skip-freq"); step > 0) {
    windows.emplace();
    for (std::int64_t number = 1; number <= layers; ++number) windows->push_back(number % step != 0);
  }
  if (config.at("model_type") != "gpt_oss" || !windows) {
    notes.push_back("--window-attn-skip-freq " + frequency + " is not modelled: every layer has the window");
    return;
  }
  for (const bool window : *windows)
    config["layer_types"].push_back(window ? "sliding_attention" : "full_attention");
}

// "(4095,0)": keys before a query's own that it meets, and after it.
void add_window(const MegatronFlags& flags, Json& config, std::vector<std::string>& notes) {
  long before = -1, after = -1;
  const std::string window = join(flags.values("--window-size"), "");
  const char* from = window.c_str() + (window.starts_with('(') ? 1 : 0);
  const bool is_read = std::sscanf(from, "%ld,%ld", &before, &after) == 2 && before >= 0;
  const std::string type = config.at("model_type");
  const bool is_plain =
      type == "llama" && !config.value("attention_bias", false) && !config.value("mlp_bias", false);
  if (!is_read || after != 0 || !(is_plain || type == "mixtral" || type == "gpt_oss")) {
    notes.push_back("--window-size " + window + " is not modelled");
    return;
  }
  if (is_plain) config["model_type"] = "mistral";
  for (const char* key : {"attention_bias", "mlp_bias"}) config.erase(key);
  config["sliding_window"] = before + 1;
  if (flags.has("--window-attn-skip-freq")) add_full_layers(flags, config, notes);
}

}  // namespace

Json megatron_model(const MegatronFlags& flags, std::vector<std::string>& notes) {
  const std::optional<HybridPattern> hybrid = hybrid_pattern(flags);
  const bool experts = flags.has("--num-experts");
  if (!experts && flags.has("--multi-latent-attention"))
    flags.fail("--multi-latent-attention", "is modelled with experts only", "--num-experts");
  Json config = hybrid    ? hybrid_model(flags, *hybrid, notes)
                : experts ? mixture(flags, notes)
                          : dense(flags, notes);
  if (flags.has("--multi-latent-attention")) add_latent(flags, config);
  if (flags.has("--window-size")) add_window(flags, config, notes);
  config["vocab_size"] = vocabulary(flags);
  config["tie_word_embeddings"] = !flags.has("--untie-embeddings-and-output-weights");
  return config;
}

}  // namespace rehearse
