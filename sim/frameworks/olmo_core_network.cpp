#include "frameworks/olmo_core_network.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "frameworks/layer_pattern.h"
#include "frameworks/plan_yaml.h"
#include "frameworks/python_configuration.h"
#include "frameworks/python_objects.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 32;

// The network has a part that the format lacks, and is not read.
struct NotRead : std::runtime_error {
  using std::runtime_error::runtime_error;
};

const Json& at(const Json& object, const char* key) {
  static const Json none;
  return object.is_object() && object.contains(key) ? object[key] : none;
}

std::int64_t size_at(const Json& object, const char* key, std::int64_t fallback = 0) {
  const Json& value = at(object, key);
  if (value.is_null() && fallback > 0) return fallback;
  const bool is_size = value.is_number_integer() && value > 0 && value < kMaxSize;
  if (!is_size) throw NotRead{fmt::format("{} is not known: {}", key, value.dump().substr(0, 60))};
  return value.get<std::int64_t>();
}

bool is_on(const Json& object, const char* key) {
  return at(object, key) == true;
}

class OlmoCoreNetwork {
 public:
  OlmoCoreNetwork(const Json& model, std::vector<std::string>& notes) : model_(model), notes_(notes) {}

  Json config(std::int64_t positions) {
    if (olmo_core_word(at(model_, "name")) == "normalized") throw NotRead{"nGPT normalizes its weights"};
    hidden_ = size_at(model_, "d_model");
    const std::int64_t count = size_at(model_, "n_layers");
    if (count > kMaxLayersOfFile)
      throw NotRead{fmt::format("n_layers {} is above {}", count, kMaxLayersOfFile)};
    for (std::int64_t i = 0; i < count; ++i) layers_.push_back(layer(block_of(i), i, count));
    config_["model_type"] = "block_list";
    config_["hidden_size"] = hidden_;
    config_["vocab_size"] = size_at(model_, "vocab_size");
    config_["max_position_embeddings"] = positions;
    config_["activation"] = "swiglu";
    config_["position_embedding_type"] = has_rotary_ ? "rope" : "none";
    config_["tie_word_embeddings"] = is_on(model_, "tie_word_embeddings");
    config_["blocks"] = blocks_;
    config_["layers"] = Json::array({repeated()});
    others();
    return config_;
  }

 private:
  void note(const std::string& text) {
    if (std::ranges::find(notes_, text) == notes_.end()) notes_.push_back(text);
  }

  // nn/transformer/config.py, resolve_block_configs.
  const Json& block_of(std::int64_t layer) const {
    const Json& overrides = at(model_, "block_overrides");
    if (!overrides.is_null() && !overrides.is_object()) throw NotRead{"block_overrides is not known"};
    const Json& own = at(overrides, std::to_string(layer).c_str());
    if (!own.is_null()) return own;
    const Json& block = at(model_, "block");
    const Json& pattern = at(model_, "block_pattern");
    if (pattern.is_null()) return block;
    if (!pattern.is_array() || pattern.empty()) throw NotRead{"block_pattern is not known"};
    const Json& name = pattern[static_cast<std::size_t>(layer) % pattern.size()];
    return at(block, name.is_string() ? name.get<std::string>().c_str() : "");
  }

  // The first block of these sizes gives its name; others are told apart by their number.
  std::string named(const std::string& name, const Json& block) {
    for (int i = 1;; ++i) {
      const std::string each = i == 1 ? name : fmt::format("{}_{}", name, i);
      if (!blocks_.contains(each)) blocks_[each] = block;
      if (blocks_[each] == block) return each;
    }
  }

  std::string layer(const Json& block, std::int64_t index, std::int64_t count) {
    static const std::map<std::string, std::string> places = {
        {"default", "before"},       {"default_scaled", "before"},
        {"reordered_norm", "after"}, {"peri_norm", "both"},
        {"moe", "before"},           {"moe_reordered_norm", "after"},
        {"moe_hybrid", "before"},    {"moe_hybrid_reordered_norm", "after"}};
    const std::string type = olmo_core_word(at(block, "name"));
    const auto place = places.find(type.empty() ? "default" : type);
    if (place == places.end() || !block.is_object()) throw NotRead{"the block " + type + " is not known"};
    if (!config_.contains("norm_place")) config_["norm_place"] = place->second;
    if (config_["norm_place"] != place->second) throw NotRead{"blocks differ in the place of their norms"};
    if (type == "default_scaled") note("the scale of each norm (default_scaled) is not counted");
    for (const char* key : {"dropout", "attention_residual_alpha", "feed_forward_residual_alpha"})
      if (!at(block, key).is_null())
        note(fmt::format("model.block.{} is ignored: no such kernel is counted", key));
    known(block, "block",
          "name sequence_mixer attention layer_norm feed_forward feed_forward_moe dropout "
          "attention_residual_alpha feed_forward_residual_alpha");
    norm(at(block, "layer_norm"));
    const std::string mixer = mixer_of(at(block, "sequence_mixer"), index, count);
    return mixer + "+" + mlp_of(block);
  }

  void known(const Json& part, const char* name, const char* words) {
    const std::set<std::string> keys = keys_of(words);
    for (const auto& [key, value] : part.items())
      if (key != kPythonMadeBy && !keys.contains(key) && !value.is_null())
        note(fmt::format("{} of the {} is ignored: its effect is not known", key, name));
  }

  // nn/layer_norm.py: "default" is LayerNorm, with a bias by default; the others are kinds of RMSNorm.
  void norm(const Json& norm) {
    if (norm.is_null())
      return note("model.block.layer_norm None is ignored: norms of the branches are counted");
    const std::string name = olmo_core_word(at(norm, "name"));
    const bool has_bias = at(norm, "bias") != false;
    const bool is_layer_norm = name.empty() || name == "default";
    const std::string kind = !is_layer_norm ? "RMSNorm" : has_bias ? "LayerNorm" : "LayerNorm without bias";
    if (!is_layer_norm && is_on(norm, "bias"))
      note("the bias of an RMSNorm is ignored: it is counted without");
    if (!config_.contains("normalization")) config_["normalization"] = kind;
    if (config_["normalization"] != kind) throw NotRead{"blocks differ in the kind of their norms"};
  }

  std::string mixer_of(const Json& mixer, std::int64_t index, std::int64_t count) {
    const std::string made = made_by(mixer);
    if (made.ends_with("GatedDeltaNetConfig")) return recurrence(mixer);
    if (!made.ends_with("AttentionConfig"))
      throw NotRead{"the mixer " + (made.empty() ? "of a block" : made) + " is not known"};
    Json block = {{"kind", "attention"},
                  {"num_attention_heads", size_at(mixer, "n_heads", 16)},
                  {"num_key_value_heads", size_at(mixer, "n_kv_heads", size_at(mixer, "n_heads", 16))}};
    block["head_dim"] =
        size_at(mixer, "head_dim", std::max<std::int64_t>(1, hidden_ / size_at(mixer, "n_heads", 16)));
    known(mixer, "attention",
          "name n_heads n_kv_heads head_dim bias gate rope clip_qkv qk_norm dropout use_flash "
          "backend dtype sliding_window use_head_qk_norm");
    const std::string type = olmo_core_word(at(mixer, "name"));
    if (type == "normalized") throw NotRead{"nGPT normalizes its attention"};
    if (type == "fused")
      note("fused attention is approximated: a GEMM each is counted for queries, keys and values");
    const bool has_bias = at(mixer, "bias") != false;
    block["qkv_bias"] = block["attention_out_bias"] = has_bias;
    if (at(mixer, "qk_norm").is_object())
      block["qk_norm_span"] = is_on(mixer, "use_head_qk_norm") ? "head" : "all heads";
    if (const Json& gate = at(mixer, "gate"); gate.is_object()) {
      block["attention_gate"] = true;
      if (olmo_core_word(at(gate, "granularity")) != "elementwise")
        note("a gate for each head is approximated: a gate for each element is counted");
    }
    for (const char* key : {"clip_qkv", "dropout"})
      if (!at(mixer, key).is_null())
        note(fmt::format("{} of attention is ignored: no such kernel is counted", key));
    const std::int64_t window = window_of(at(mixer, "sliding_window"), index, count);
    if (window > 0) block["sliding_window"] = window;
    rotary(at(mixer, "rope"));
    return named(window > 0 ? "window" : "attention", block);
  }

  void rotary(const Json& rope) {
    has_rotary_ = has_rotary_ || rope.is_object();
    if (rope.is_object() && is_on(rope, "no_global_rope"))
      note("no_global_rope is approximated: rotary positions are counted in every layer");
  }

  // nn/attention/__init__.py, SlidingWindowAttentionConfig; 0 where the layer sees all keys.
  std::int64_t window_of(const Json& sliding, std::int64_t index, std::int64_t count) {
    if (!sliding.is_object()) return 0;
    const bool first = at(sliding, "force_full_attention_on_first_layer") != false;
    const bool last = at(sliding, "force_full_attention_on_last_layer") != false;
    if ((first && index == 0) || (last && index == count - 1)) return 0;
    const Json& pattern = at(sliding, "pattern");
    if (!pattern.is_array() || pattern.empty()) throw NotRead{"the pattern of sliding_window is not known"};
    const Json& size = pattern[static_cast<std::size_t>(index - (first ? 1 : 0)) % pattern.size()];
    if (size == -1) return 0;
    if (!size.is_number_integer() || size < 1 || size > kMaxSize) throw NotRead{"a window is not known"};
    if (window_ > 0 && size != window_)
      note(fmt::format("windows of several sizes are approximated: {} is counted in each", window_));
    if (window_ == 0) window_ = size.get<std::int64_t>();
    return window_;
  }

  std::string recurrence(const Json& mixer) {
    const std::int64_t heads = size_at(mixer, "n_heads", 16), values = size_at(mixer, "n_v_heads", heads);
    const std::int64_t width = size_at(mixer, "head_dim", std::max<std::int64_t>(1, hidden_ / heads));
    const Json& expand = at(mixer, "expand_v");
    const double ratio = expand.is_number() ? expand.get<double>() : 2;
    if (ratio < 0.01 || ratio > 100) throw NotRead{"expand_v is not known"};
    known(mixer, "recurrence",
          "n_heads n_v_heads head_dim expand_v allow_neg_eigval conv_size conv_bias norm_eps dtype");
    if (is_on(mixer, "conv_bias")) note("conv_bias is ignored: the convolution is counted without bias");
    return named("gdn",
                 {{"kind", "gated_delta_rule"},
                  {"linear_num_key_heads", heads},
                  {"linear_num_value_heads", values},
                  {"linear_key_head_dim", width},
                  {"linear_value_head_dim", static_cast<std::int64_t>(static_cast<double>(width) * ratio)},
                  {"linear_conv_kernel_dim", size_at(mixer, "conv_size", 4)}});
  }

  std::string mlp_of(const Json& block) {
    const Json& dense = at(block, "feed_forward");
    const Json& experts = at(block, "feed_forward_moe");
    if (experts.is_object()) return experts_of(experts, dense);
    if (!dense.is_object()) throw NotRead{"a block has no feed_forward"};
    activation(dense);
    return named("mlp", {{"kind", "mlp"},
                         {"intermediate_size", size_at(dense, "hidden_size")},
                         {"mlp_bias", at(dense, "bias") != false}});
  }

  void activation(const Json& mlp) {
    known(mlp, "feed_forward", "name hidden_size bias dtype activation");
    const std::string name = olmo_core_word(at(mlp, "activation"));
    if (!name.empty() && name != "silu")
      note(fmt::format("activation {} is approximated: SwiGLU is counted, which has the same GEMMs", name));
  }

  // A dense MLP beside the experts has the GEMMs of a shared expert.
  std::string experts_of(const Json& experts, const Json& dense) {
    Json block = {{"kind", "experts"},
                  {"num_experts", size_at(experts, "num_experts", 1)},
                  {"num_experts_per_tok", size_at(at(experts, "router"), "top_k", 1)},
                  {"moe_intermediate_size", size_at(experts, "hidden_size", 256)}};
    known(experts, "experts",
          "name num_experts hidden_size capacity_factor router shared_mlp lb_loss_weight "
          "lb_loss_granularity z_loss_weight scale_loss_by_num_layers dtype");
    const Json& shared = at(experts, "shared_mlp");
    std::int64_t width = 0;
    for (const Json& each : {shared, dense})
      if (each.is_object()) width += size_at(each, "hidden_size");
    for (const Json& each : {shared, dense})
      if (each.is_object() && at(each, "bias") != false)
        note("biases of the MLP beside the experts are ignored: it is counted without");
    if (width > 0) block["shared_expert_intermediate_size"] = width;
    if (dense.is_object())
      note("the dense MLP beside the experts (moe_hybrid) is approximated: it is counted as a shared expert");
    return named("experts", block);
  }

  // The shortest pattern whose repetition gives all layers.
  Json repeated() const {
    std::size_t period = 1;
    const auto repeats = [&](std::size_t length) {
      if (layers_.size() % length != 0) return false;
      for (std::size_t i = length; i < layers_.size(); ++i)
        if (layers_[i] != layers_[i - length]) return false;
      return true;
    };
    while (!repeats(period)) ++period;
    return {{"repeat", layers_.size() / period},
            {"pattern", std::vector<std::string>(layers_.begin(),
                                                 layers_.begin() + static_cast<std::ptrdiff_t>(period))}};
  }

  void others() {
    static const std::set<std::string> read = keys_of(
        "() d_model vocab_size n_layers block block_pattern block_overrides lm_head name tie_word_embeddings "
        "dtype init_method init_seed init_std embedding_init_std embed_scale freeze_params");
    for (const auto& [key, value] : model_.items())
      if (!read.contains(key) && !value.is_null())
        note(fmt::format("model.{} is ignored: the network is counted without it", key));
    known(at(model_, "lm_head"), "head", "name layer_norm bias dtype loss_implementation");
    if (is_on(at(model_, "lm_head"), "bias")) config_["head_bias"] = true;
  }

  const Json& model_;
  std::vector<std::string>& notes_;
  std::int64_t hidden_ = 0, window_ = 0;
  bool has_rotary_ = false;
  Json blocks_ = Json::object(), config_ = Json::object();
  std::vector<std::string> layers_;
};

}  // namespace

std::string olmo_core_word(const Json& value) {
  if (!value.is_string()) return "";
  const std::string text = value.get<std::string>();
  return text.substr(text.find_last_of('.') + 1);
}

Json olmo_core_network(const Json& model, std::int64_t positions, std::vector<std::string>& notes) {
  std::vector<std::string> found;
  try {
    Json config = OlmoCoreNetwork(model, found).config(positions);
    notes.insert(notes.end(), found.begin(), found.end());
    return config;
  } catch (const NotRead& part) {
    notes.push_back(
        fmt::format("the network is not read, because {}: pass --model NAME|config.json", part.what()));
    return nullptr;
  }
}

}  // namespace rehearse
