#include <array>
#include <set>
#include <string_view>

#include "model/families.h"

namespace rehearse {

namespace {

constexpr const char* kFurtherTokens = "num_nextn_predict_layers";
constexpr const char* kChunks = "attention_chunk_size";
constexpr const char* kEncoder = "is_encoder_decoder";
constexpr const char* kLogitCap = "final_logit_softcapping";

// Keys that cost time or memory unless their value means "not used".
constexpr std::array kCostly = {
    "add_cross_attention",      // a second attention in every layer
    kChunks,                    // attention inside chunks of the sequence
    "audio_config",             // an audio encoder before the language model
    "attn_logit_softcapping",   // one more pass over the scores
    "encoder_layers",           // an encoder beside the decoder
    kLogitCap,                  // one more pass over the logits
    kEncoder,                   // an encoder beside the decoder
    kFurtherTokens,             // multi-token prediction (MTP): more layers and heads
    "quantization_config",      // weights in another type than the plan's
    "reorder_and_upcast_attn",  // attention scores in fp32
    "vision_config",            // an image encoder before the language model
};

// Llama 4's chunks are read as windows. MiMo-V2's files state the sliding window a second time.
bool says_the_window(const Json& chunk, const Model& model) {
  return model.window_in_chunks || (model.window > 0 && chunk == model.window);
}

// Values that transformers writes for "not used".
bool is_nothing(const Json& value) {
  return value.is_null() || value == false || (value.is_number() && value == 0) ||
         ((value.is_array() || value.is_object() || value.is_string()) && value.empty());
}

// Layers of more than one kind ("sliding_attention" among "full_attention").
bool mixes_layers(const Json& types) {
  if (!types.is_array()) return false;
  std::set<std::string> kinds;
  for (const Json& type : types) kinds.insert(type.dump());
  return kinds.size() > 1;
}

}  // namespace

std::vector<std::string> unmodelled_keys(const JsonReader& config, const Model& model) {
  std::vector<std::string> keys;
  for (const std::string_view key : kCostly) {
    const std::string name(key);
    if (name == kFurtherTokens && model.mtp_layers > 0) continue;
    if (name == kEncoder && model.encoder_layers > 0) continue;
    if (name == kChunks && config.has(name) && says_the_window(config.value(name), model)) continue;
    if (name == kLogitCap && model.caps_logits) continue;
    if (config.has(name) && !is_nothing(config.value(name))) keys.push_back(name);
  }
  const bool reads_types = model.full_every > 0 || !model.windows.empty() || !model.recurrent.empty();
  if (!reads_types && config.has("layer_types") && mixes_layers(config.value("layer_types")))
    keys.push_back("layer_types");
  return keys;
}

}  // namespace rehearse
