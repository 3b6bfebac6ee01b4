#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "base/names.h"
#include "frameworks/layer_pattern.h"
#include "frameworks/megatron_deepspeed.h"
#include "frameworks/megatron_flags.h"
#include "frameworks/megatron_hybrid.h"

namespace rehearse {

namespace {

// "yarn" and "mrope" rotate as "rope" does; a type that a model cannot name becomes the nearest one. Forks
// write "rotary" (alibaba/Pai-Megatron-Patch, megatron_patch/model/llama/transformer.py).
std::string positions(const MegatronFlags& flags, std::vector<std::string>& notes) {
  if (flags.has("--use-rotary-position-embeddings")) return "rope";
  if (flags.has("--no-position-embedding") && !flags.has("--position-embedding-type")) return "none";
  const std::string type = flags.text_or("--position-embedding-type", "learned_absolute");
  if (type == "deepseek4")  // Ascend/MindSpeed-LLM
    flags.fail("--position-embedding-type",
               "names the attention of DeepSeek-V4, which options do not describe here",
               fmt::format("rehearse import {} --model config.json, the model's own", flags.file()));
  if (type == "rotary") {
    notes.emplace_back(
        "--position-embedding-type rotary is a fork's word for rope; a fork's own network may have other "
        "norms "
        "and biases than its options say: --model FILE decides");
    return "rope";
  }
  const std::string nearest = type == "mrope" ? "rope" : type == "relative" ? "learned_absolute" : type;
  if (nearest != type)
    notes.push_back(fmt::format("--position-embedding-type {} is modelled as {}", type, nearest));
  return nearest == "learned_absolute" && flags.has("--no-position-embedding") ? "none" : nearest;
}

// The longest sequence, which logs of some releases do not print.
std::int64_t most_positions(const MegatronFlags& flags, bool learned) {
  constexpr std::int64_t kLongContext = 131072;  // decides nothing where positions are not learned
  if (!flags.has("--max-position-embeddings") && flags.has("--seq-length"))
    return flags.integer("--seq-length");
  if (!flags.has("--max-position-embeddings") && !learned) return kLongContext;
  if (!flags.has("--max-position-embeddings"))
    flags.fail("--max-position-embeddings", "must be given where positions are learned", "--seq 2048");
  return flags.integer("--max-position-embeddings");
}

bool is_gated(const MegatronFlags& flags) {
  return flags.has("--swiglu") || flags.has("--quick-geglu");
}

std::string activation(const MegatronFlags& flags, std::vector<std::string>& notes) {
  if (flags.has("--quick-geglu") && !flags.has("--swiglu"))
    notes.emplace_back("--quick-geglu is modelled as SwiGLU, which has the same GEMMs");
  if (is_gated(flags)) return "swiglu";
  return flags.has("--squared-relu") ? "squared_relu" : "gelu";
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

// "-1" of MindSpeed-LLM's scripts: none.
bool has_dense_ahead(const MegatronFlags& flags) {
  return flags.has("--first-k-dense-replace") && flags.text("--first-k-dense-replace") != "-1" &&
         flags.text_or("--moe-layer-freq", "1") == "1";
}

std::string as_marks(const std::vector<bool>& layers) {
  std::string marks;
  for (const bool layer : layers) marks += layer ? '1' : '0';
  return marks;
}

// MindSpeed-LLM, mindspeed_llm/core/transformer/transformer_block.py: first_k_dense_replace.
std::string sparse_layers_behind(const MegatronFlags& flags) {
  std::vector<bool> marks;
  for (std::int64_t layer = 0; layer < flags.integer("--num-layers"); ++layer)
    marks.push_back(layer >= flags.integer("--first-k-dense-replace"));
  return std::ranges::find(marks, false) == marks.end() ? "" : as_marks(marks);
}

// Layers that have experts; "" where all do, or where the flag cannot be read.
std::string sparse_layers(const MegatronFlags& flags, std::vector<std::string>& notes) {
  if (hybrid_pattern(flags)) return "";
  if (has_dense_ahead(flags)) return sparse_layers_behind(flags);
  if (!flags.has("--moe-layer-freq")) return "";
  const std::string frequency = join(flags.values("--moe-layer-freq"), "");
  const auto layers = layer_pattern(frequency, flags.integer("--num-layers"));
  if (!layers || std::ranges::find(*layers, true) == layers->end()) {
    notes.push_back("--moe-layer-freq " + frequency + " is ignored: every layer has experts");
    return "";
  }
  return std::ranges::find(*layers, false) == layers->end() ? "" : as_marks(*layers);
}

void add_experts(const MegatronFlags& flags, Json& config, std::vector<std::string>& notes) {
  const std::int64_t width = flags.integer_or("--moe-ffn-hidden-size", ffn_hidden(flags));
  if (width == 0) flags.fail("--moe-ffn-hidden-size", "must be above 0");
  config["num_experts"] = flags.integer("--num-experts");
  config["num_experts_per_tok"] = flags.integer_or("--moe-router-topk", 2);
  config["moe_intermediate_size"] = width;
  // MindSpeed-LLM, mindspeed_llm/features_manager/moe/shared_expert.py.
  const std::int64_t together = flags.integer_or("--n-shared-experts", 0) * width;
  if (const std::int64_t shared = flags.integer_or("--moe-shared-expert-intermediate-size", together);
      shared > 0)
    config["moe_shared_expert_intermediate_size"] = shared;
  if (flags.has("--moe-latent-size")) config["moe_latent_size"] = flags.integer("--moe-latent-size");
  if (flags.has("--activation-func-clamp-value"))
    config["swiglu_limit"] = flags.number("--activation-func-clamp-value");
  config["router_bias"] = flags.has("--moe-router-enable-expert-bias");
  // On the router too (core/transformer/moe/router.py, experts.py: add_bias_linear).
  config["moe_linear_bias"] = !flags.has("--disable-bias-linear");
  if (const std::string layers = sparse_layers(flags, notes); !layers.empty())
    config["moe_layer_freq"] = layers;
  if (is_megatron_deepspeed(flags)) add_experts_of_deepspeed(flags, width, config, notes);
  if (!flags.has("--moe-grouped-gemm") && !flags.has("--moe-use-legacy-grouped-gemm"))
    notes.emplace_back(
        "--moe-grouped-gemm is not given: experts are counted as one grouped GEMM, which is faster than one "
        "GEMM for each expert");
}

void add_latent(const MegatronFlags& flags, Json& config) {
  const std::int64_t plain = flags.integer_or("--qk-head-dim", 128),
                     rotary = flags.integer_or("--qk-pos-emb-head-dim", 64);
  if (flags.has("--q-lora-rank")) config["q_lora_rank"] = flags.integer("--q-lora-rank");
  config["kv_lora_rank"] = flags.integer_or("--kv-lora-rank", 32);
  config["qk_nope_head_dim"] = plain;
  config["qk_rope_head_dim"] = rotary;
  config["v_head_dim"] = flags.integer_or("--v-head-dim", 128);
  config["head_dim"] = plain + rotary;
  config["num_key_value_heads"] = config["num_attention_heads"];
  config["qk_layernorm"] = false;  // of latent rows, which every model with latent attention has
}

// Layers without an attention window: every n-th one, or those that are 0 in a list.
void add_full_layers(const MegatronFlags& flags, Json& config, std::vector<std::string>& notes) {
  const std::string frequency = join(flags.values("--window-attn-skip-freq"), "");
  if (frequency.find('[') == std::string::npos) {
    if (const std::int64_t step = flags.integer("--window-attn-skip-freq"); step > 0)
      config["window_attn_skip_freq"] = step;
    return;
  }
  if (const auto windows = layer_pattern(frequency, flags.integer("--num-layers")))
    config["window_layers"] = as_marks(*windows);
  else
    notes.push_back("--window-attn-skip-freq " + frequency + " is ignored: every layer has the window");
}

// "(4095,0)": numbers of keys before and after a query's own to which it attends.
void add_window(const MegatronFlags& flags, Json& config, std::vector<std::string>& notes) {
  long before = -1, after = -1;
  const std::string window = join(flags.values("--window-size"), "");
  const char* from = window.c_str() + (window.starts_with('(') ? 1 : 0);
  const bool is_read = std::sscanf(from, "%ld,%ld", &before, &after) == 2 && before >= 0;
  if (!is_read || after != 0) {
    notes.push_back("--window-size " + window + " is ignored");
    return;
  }
  config["sliding_window"] = before + 1;
  if (flags.has("--window-attn-skip-freq") && !hybrid_pattern(flags)) add_full_layers(flags, config, notes);
}

void add_kind(const MegatronFlags& flags, Json& config, std::vector<std::string>& notes) {
  const bool rms =
      in_lower_case(flags.text_or("--normalization", "LayerNorm")).find("rms") != std::string::npos;
  const bool biases = !flags.has("--disable-bias-linear");
  config["normalization"] = rms ? "RMSNorm" : "LayerNorm";
  config["activation"] = activation(flags, notes);
  config["qkv_bias"] = biases || flags.has("--add-qkv-bias");
  config["attention_out_bias"] = biases;
  config["mlp_bias"] = biases;
  config["qk_layernorm"] = flags.has("--qk-layernorm");
  config["hidden_dropout"] = flags.number_or("--hidden-dropout", 0.1);  // Megatron-LM's defaults
  config["attention_dropout"] = flags.number_or("--attention-dropout", 0.1);
}

}  // namespace

Json megatron_model(const MegatronFlags& flags, std::vector<std::string>& notes) {
  const std::optional<HybridPattern> hybrid = hybrid_pattern(flags);
  if (!hybrid && flags.integer("--num-layers") > kMaxLayersOfFile)
    flags.fail("--num-layers", fmt::format("must be at most {}", kMaxLayersOfFile),
               std::to_string(kMaxLayersOfFile));
  const std::int64_t heads = flags.integer("--num-attention-heads");
  const std::string positioned = positions(flags, notes);
  const std::int64_t rows = most_positions(flags, positioned == "learned_absolute");
  if (!flags.has("--max-position-embeddings"))
    notes.push_back(fmt::format("--max-position-embeddings is not given: {} is used", rows));
  Json config = {{"model_type", "megatron_gpt"},
                 {"num_hidden_layers", hybrid ? std::ssize(hybrid->layers) : flags.integer("--num-layers")},
                 {"hidden_size", flags.integer("--hidden-size")},
                 {"intermediate_size", ffn_hidden(flags)},
                 {"num_attention_heads", heads},
                 {"num_key_value_heads",
                  flags.has("--group-query-attention") ? flags.integer("--num-query-groups") : heads},
                 {"max_position_embeddings", rows},
                 {"position_embedding_type", positioned}};
  if (flags.text_or("--attention-head-type", "") == "multiquery") config["num_key_value_heads"] = 1;
  if (flags.has("--num-key-value-heads"))
    config["num_key_value_heads"] = flags.integer("--num-key-value-heads");
  if (flags.has("--kv-channels")) config["head_dim"] = flags.integer("--kv-channels");
  add_kind(flags, config, notes);
  if (hybrid) add_hybrid(flags, *hybrid, config, notes);
  const bool is_dense = is_megatron_deepspeed(flags) && flags.integer_or("--num-experts", 1) == 1;
  const bool experts = is_dense ? false
                       : hybrid ? (hybrid->layers + hybrid->module).find('E') != std::string::npos
                                : flags.has("--num-experts");
  if (experts) add_experts(flags, config, notes);
  if (flags.has("--multi-latent-attention")) add_latent(flags, config);
  if (flags.has("--window-size")) add_window(flags, config, notes);
  if (flags.text_or("--softmax-type", "vanilla") == "learnable") config["softmax_type"] = "learnable";
  config["vocab_size"] = megatron_vocabulary(flags, notes);
  config["tie_word_embeddings"] = !flags.has("--untie-embeddings-and-output-weights");
  return config;
}

}  // namespace rehearse
