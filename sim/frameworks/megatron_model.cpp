#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/names.h"
#include "frameworks/layer_pattern.h"
#include "frameworks/megatron_flags.h"
#include "frameworks/megatron_hybrid.h"

namespace rehearse {

namespace {

// The family whose every part is said (model/read_megatron.cpp).
constexpr const char* kAnyGpt = "megatron_gpt";

struct NamedVocabulary {
  const char* part;  // of the tokenizer's name, in lower case
  std::int64_t words;
};
// len() of the tokenizers of Hugging Face: the vocabularies of their tokenizer.json with the added tokens.
constexpr std::array kVocabularies = {NamedVocabulary{"llama-3", 128256},
                                      NamedVocabulary{"llama3", 128256},
                                      NamedVocabulary{"llama_tokenizer.model", 32000},
                                      NamedVocabulary{"llama-2", 32000},
                                      NamedVocabulary{"llama2", 32000},
                                      NamedVocabulary{"mixtral-8x7b", 32000},
                                      NamedVocabulary{"mistral-7b-v0.1", 32000},
                                      NamedVocabulary{"mixtral-8x22b", 32000},
                                      NamedVocabulary{"mistral-nemo", 131072},
                                      NamedVocabulary{"minitron", 256000},
                                      NamedVocabulary{"nemotron-4", 256000},
                                      NamedVocabulary{"qwen2.5", 151665},
                                      NamedVocabulary{"qwen3-", 151669},
                                      NamedVocabulary{"deepseek-v3", 128815}};

// 0 where the name tells nothing.
std::int64_t vocabulary_of_tokenizer(const std::string& tokenizer, std::vector<std::string>& notes) {
  const std::string name = in_lower_case(tokenizer);
  for (const NamedVocabulary& each : kVocabularies)
    if (name.find(each.part) != std::string::npos) {
      notes.push_back(fmt::format("--tokenizer-model {}: the vocabulary is taken to hold {} words", tokenizer,
                                  each.words));
      return each.words;
    }
  return 0;
}

// Of a tokenizer that states none: of TikTokenizer Megatron-LM's own, of word pieces BERT's, of others a
// usual one.
std::int64_t assumed_vocabulary(const std::string& tokenizer, std::vector<std::string>& notes) {
  const std::string type = in_lower_case(tokenizer);
  const auto has = [&](const char* part) { return type.find(part) != std::string::npos; };
  if (has("tiktok")) return 131072;  // megatron/training/tokenizer/tokenizer.py, CustomTikTokenizer
  const std::int64_t words = has("wordpiece")                        ? 30522
                             : has("sentencepiece") || has("llama2") ? 32000
                                                                     : 128256;
  notes.push_back(
      fmt::format("--tokenizer-type {} does not state its vocabulary: {} words are assumed in embedding and "
                  "output; pass --vocab-size",
                  tokenizer, words));
  return words;
}

std::string name_of_tokenizer(const MegatronFlags& flags) {
  return flags.has("--tokenizer-model") ? join(flags.values("--tokenizer-model"), " ") : "";
}

// Vocabularies that tokenizers of Megatron-LM bring with them.
std::int64_t vocabulary(const MegatronFlags& flags, std::vector<std::string>& notes) {
  if (flags.has("--padded-vocab-size")) return flags.integer("--padded-vocab-size");
  const std::string tokenizer = flags.text_or("--tokenizer-type", "GPT2BPETokenizer");
  std::int64_t words = flags.integer_or("--vocab-size", 0);
  if (words == 0 && tokenizer == "GPT2BPETokenizer") words = 50257;
  if (!flags.has("--vocab-size") && !flags.has("--tokenizer-type") && !flags.has("--merge-file"))
    notes.push_back(
        "no vocabulary and no tokenizer is given: GPT-2's 50257 words are assumed; pass --vocab-size");
  if (words == 0 && tokenizer == "Llama2Tokenizer") words = 32000;
  if (words == 0) words = vocabulary_of_tokenizer(name_of_tokenizer(flags), notes);
  if (words == 0) words = assumed_vocabulary(tokenizer, notes);
  const std::int64_t unit =
      std::max<std::int64_t>(1, flags.integer_or("--make-vocab-size-divisible-by", 128)) *
      std::max<std::int64_t>(1, flags.integer_or("--tensor-model-parallel-size", 1));
  if (tokenizer == "NullTokenizer" && words % unit == 0)  // core/tokenizers/text/libraries/null_tokenizer.py
    notes.push_back(
        "--tokenizer-type NullTokenizer: releases up to core_v0.16 add a word to --vocab-size, which is not "
        "counted");
  return (words + unit - 1) / unit * unit;
}

std::string positions(const MegatronFlags& flags) {
  return flags.text_or("--position-embedding-type", "learned_absolute");
}

// "yarn" and "mrope" rotate as "rope" does.
bool is_rotary(const MegatronFlags& flags) {
  const std::string type = positions(flags);
  return flags.has("--use-rotary-position-embeddings") || type == "rope" || type == "yarn" || type == "mrope";
}

// Megatron-LM's defaults are 0.1.
bool has_dropout(const MegatronFlags& flags) {
  return flags.number_or("--hidden-dropout", 0.1) > 0 || flags.number_or("--attention-dropout", 0.1) > 0;
}

// Logs of some releases do not print it.
std::int64_t most_positions(const MegatronFlags& flags) {
  constexpr std::int64_t kLongContext = 131072;  // decides nothing where positions are rotated
  if (!flags.has("--max-position-embeddings") && flags.has("--seq-length"))
    return flags.integer("--seq-length");
  if (!flags.has("--max-position-embeddings") && is_rotary(flags)) return kLongContext;
  return flags.integer("--max-position-embeddings");
}

Json gpt2(const MegatronFlags& flags) {
  Json config = {{"model_type", "gpt2"},
                 {"activation_function", "gelu"},
                 {"n_layer", flags.integer("--num-layers")},
                 {"n_embd", flags.integer("--hidden-size")},
                 {"n_head", flags.integer("--num-attention-heads")},
                 {"n_positions", most_positions(flags)},
                 {"resid_pdrop", flags.number_or("--hidden-dropout", 0.1)},
                 {"embd_pdrop", flags.number_or("--hidden-dropout", 0.1)},
                 {"attn_pdrop", flags.number_or("--attention-dropout", 0.1)}};
  if (flags.has("--ffn-hidden-size")) config["n_inner"] = flags.integer("--ffn-hidden-size");
  return config;
}

// Megatron-LM's own default of a gated network (arguments.py): two thirds of four times the width, by 64.
std::int64_t ffn_hidden(const MegatronFlags& flags) {
  const std::int64_t hidden = flags.integer("--hidden-size");
  std::int64_t fallback = flags.has("--swiglu") ? hidden * 8 / 3 / 64 * 64 : 4 * hidden;
  if (flags.has("--multiple-of")) {  // FlagScale (flagscale/runner/auto_tuner/utils.py)
    const std::int64_t unit = std::max<std::int64_t>(1, flags.integer("--multiple-of"));
    const double wide =
        static_cast<double>(4 * hidden * 2 / 3) * flags.number_or("--hidden-dim-multiplier", 1);
    fallback = (static_cast<std::int64_t>(wide) + unit - 1) / unit * unit;
  }
  return flags.integer_or("--ffn-hidden-size", fallback);
}

// What the flags choose of each layer, and a family of Hugging Face may or may not be able to say.
struct Parts {
  bool rms = false, rotary = false, learned = false, gated = false, squared = false;
  bool qkv_bias = false, linear_bias = false, qk_norm = false, dropout = false;

  bool is_llama_like() const {  // but for biases
    return rms && rotary && gated && !squared && !dropout && qkv_bias == linear_bias;
  }
};

Parts parts_of(const MegatronFlags& flags) {
  Parts parts;
  parts.rms = in_lower_case(flags.text_or("--normalization", "LayerNorm")).find("rms") != std::string::npos;
  parts.rotary = is_rotary(flags);
  parts.learned = !parts.rotary && positions(flags) != "none" && positions(flags) != "alibi" &&
                  !flags.has("--no-position-embedding");
  parts.gated = flags.has("--swiglu");
  parts.squared = flags.has("--squared-relu");
  parts.linear_bias = !flags.has("--disable-bias-linear");
  parts.qkv_bias = parts.linear_bias || flags.has("--add-qkv-bias");
  parts.qk_norm = flags.has("--qk-layernorm");
  parts.dropout = has_dropout(flags);
  return parts;
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
                 {"max_position_embeddings", most_positions(flags)},
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
  const bool is_deepseek = type.starts_with("deepseek"), is_any = type == kAnyGpt;
  if ((is_deepseek && step == 1) || is_any) config["first_k_dense_replace"] = first;
  if (type == "qwen3_moe" || is_any) config["decoder_sparse_step"] = step;
  if (type == "qwen3_moe")
    for (std::int64_t layer = 0; layer < first; ++layer) config["mlp_only_layers"].push_back(layer);
  return is_any || type == "qwen3_moe" || (step == 1 && (is_deepseek || first == 0));
}

void layers_with_experts(const MegatronFlags& flags, Json& config, std::vector<std::string>& notes) {
  const std::string frequency = join(flags.values("--moe-layer-freq"), "");
  const auto layers = layer_pattern(frequency, flags.integer("--num-layers"));
  if (layers && say_layers(*layers, config)) return;
  notes.push_back("--moe-layer-freq " + frequency + " is ignored: every layer has experts");
}

// Scores that no key has, learned with biases everywhere: gpt-oss.
bool has_sinks(const MegatronFlags& flags) {
  return flags.text_or("--softmax-type", "vanilla") == "learnable";
}

Json any_gpt(const MegatronFlags& flags, const Parts& parts, std::vector<std::string>& notes) {
  Json config = decoder(flags, kAnyGpt);
  config.erase("attention_bias");
  config["normalization"] = parts.rms ? "RMSNorm" : "LayerNorm";
  config["position_embedding_type"] = parts.rotary ? "rope" : parts.learned ? "learned_absolute" : "none";
  config["activation"] = parts.squared ? "squared_relu" : parts.gated ? "swiglu" : "gelu";
  config["qkv_bias"] = parts.qkv_bias;
  config["attention_out_bias"] = parts.linear_bias;
  config["mlp_bias"] = parts.linear_bias;
  config["qk_layernorm"] = parts.qk_norm;
  config["hidden_dropout"] = flags.number_or("--hidden-dropout", 0.1);
  config["attention_dropout"] = flags.number_or("--attention-dropout", 0.1);
  if (flags.has("--num-experts") && parts.linear_bias)
    notes.push_back("biases of experts are ignored: --disable-bias-linear is not given");
  return config;
}

// A family of latent attention or of sinks has its parts fixed.
void note_fixed_parts(const Parts& parts, const char* what, std::vector<std::string>& notes) {
  if (!parts.rms || !parts.rotary || !(parts.gated || std::string(what) == "gpt-oss"))
    notes.push_back(fmt::format("{} is modelled with RMSNorm, rotary positions and gated experts", what));
  if (parts.dropout) notes.push_back(fmt::format("dropout (default 0.1) of {} is ignored", what));
}

const char* family_of_mixture(const MegatronFlags& flags, const Parts& parts, bool shared) {
  if (flags.has("--multi-latent-attention"))
    return flags.has("--moe-router-enable-expert-bias") ? "deepseek_v3" : "deepseek_v2";
  if (has_sinks(flags)) return "gpt_oss";
  if (!parts.is_llama_like() || shared || flags.has("--moe-router-enable-expert-bias")) return kAnyGpt;
  if (parts.qk_norm) return flags.has("--window-size") ? kAnyGpt : "qwen3_moe";
  return parts.linear_bias ? kAnyGpt : "mixtral";
}

Json mixture(const MegatronFlags& flags, std::vector<std::string>& notes) {
  const std::int64_t width = flags.integer_or("--moe-ffn-hidden-size", ffn_hidden(flags));
  if (width == 0) flags.fail("--moe-ffn-hidden-size", "must be above 0");
  const std::int64_t shared = flags.integer_or("--moe-shared-expert-intermediate-size", 0);
  const Parts parts = parts_of(flags);
  const std::string type = family_of_mixture(flags, parts, shared > 0);
  const bool latent = flags.has("--multi-latent-attention");
  Json config = type == kAnyGpt ? any_gpt(flags, parts, notes) : decoder(flags, type.c_str());
  config["num_experts_per_tok"] = flags.integer_or("--moe-router-topk", 2);
  if (latent) {
    note_fixed_parts(parts, "latent attention", notes);
    config["n_routed_experts"] = flags.integer("--num-experts");
    config["moe_intermediate_size"] = width;
    if (shared > 0) config["moe_shared_expert_intermediate_size"] = shared;
  } else if (type == "qwen3_moe" || type == kAnyGpt) {
    config["num_experts"] = flags.integer("--num-experts");
    config["moe_intermediate_size"] = width;
    if (shared > 0) config["moe_shared_expert_intermediate_size"] = shared;
    if (type == kAnyGpt) config["router_bias"] = flags.has("--moe-router-enable-expert-bias");
  } else {
    config["num_local_experts"] = flags.integer("--num-experts");
    config["intermediate_size"] = width;
    if (has_sinks(flags)) {
      note_fixed_parts(parts, "gpt-oss", notes);
      if (shared > 0) notes.push_back("shared experts are ignored with learnable softmax");
      config["swiglu_limit"] = flags.number_or("--activation-func-clamp-value", 0);
    }
  }
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

// Of the family of Hugging Face that has these parts, else with each of them said.
Json dense(const MegatronFlags& flags, std::vector<std::string>& notes) {
  const Parts parts = parts_of(flags);
  const bool groups = flags.has("--group-query-attention"), kv_channels = flags.has("--kv-channels");
  if (parts.squared && !parts.gated && !parts.rms && parts.rotary && !parts.qkv_bias && !parts.qk_norm &&
      !parts.dropout) {
    Json config = decoder(flags, "nemotron");
    config.erase("attention_bias");
    return config;
  }
  if (parts.is_llama_like() && !(parts.qk_norm && parts.linear_bias)) {
    Json config = decoder(flags, parts.qk_norm ? "qwen3" : "llama");
    if (!parts.qk_norm) config["mlp_bias"] = parts.linear_bias;
    return config;
  }
  const bool plain =
      !parts.gated && !parts.squared && !parts.rms && !parts.qk_norm && parts.linear_bias && !groups;
  if (plain && parts.learned && !kv_channels) return gpt2(flags);
  if (plain && parts.rotary) {
    Json config = decoder(flags, "gpt_neox");
    config["use_parallel_residual"] = false;
    config["hidden_dropout"] = flags.number_or("--hidden-dropout", 0.1);
    config["attention_dropout"] = flags.number_or("--attention-dropout", 0.1);
    return config;
  }
  return any_gpt(flags, parts, notes);
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
    notes.push_back("--window-attn-skip-freq " + frequency + " is ignored: every layer has the window");
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
  if (!is_read || after != 0 || !(is_plain || type == "mixtral" || type == "gpt_oss" || type == kAnyGpt)) {
    notes.push_back("--window-size " + window + " is ignored");
    return;
  }
  if (is_plain) config["model_type"] = "mistral";
  for (const char* key : {"attention_bias", "mlp_bias"}) config.erase(key);
  config["sliding_window"] = before + 1;
  if (flags.has("--window-attn-skip-freq")) add_full_layers(flags, config, notes);
}

void note_positions(const MegatronFlags& flags, std::vector<std::string>& notes) {
  const std::string type = positions(flags);
  if (type == "yarn" || type == "mrope")
    notes.push_back("--position-embedding-type " + type + " is modelled as rope");
  if (type == "alibi")
    notes.push_back("--position-embedding-type alibi is modelled as none: its biases are not counted");
  if (type == "relative")
    notes.push_back("--position-embedding-type relative is modelled as learned_absolute");
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
  note_positions(flags, notes);
  if (!flags.has("--max-position-embeddings"))
    notes.push_back(fmt::format("--max-position-embeddings is not given: {} is used", most_positions(flags)));
  config["vocab_size"] = vocabulary(flags, notes);
  config["tie_word_embeddings"] = !flags.has("--untie-embeddings-and-output-weights");
  return config;
}

}  // namespace rehearse
