#include "model/text_part.h"

#include <array>

namespace rehearse {

namespace {

// Key of the language model: text_config in transformers, llm_config in InternVL, language_config in
// DeepSeek-VL. Qwen's Omni models have thinker_config, which has a text_config inside.
constexpr std::array kTexts = {"text_config", "llm_config", "language_config", "thinker_config"};

bool is_part(const Json& config, const char* key) {
  if (!config.contains(key) || !config[key].is_object()) return false;
  const Json& part = config[key];
  return part.contains("model_type") || part.contains("architectures") || part.contains("hidden_size") ||
         part.contains("text_config");
}

// The text part, with the wrapper's keys for all parts and with the parts beside the text.
Json with_wrapper(const Json& wrapper, const char* text) {
  Json part = wrapper[text];
  for (const auto& [key, value] : wrapper.items()) {
    const bool is_beside = key != text && key.ends_with("_config");
    const bool is_shared = key == "tie_word_embeddings" || key == "quantization_config";
    if ((is_beside || is_shared) && !part.contains(key)) part[key] = value;
  }
  // Older files of some wrappers lack model_type: the wrapper's own row then describes the text.
  if (!part.contains("model_type") && !part.contains("architectures") && wrapper.contains("model_type"))
    part["model_type"] = wrapper["model_type"];
  return part;
}

}  // namespace

JsonReader text_part(const JsonReader& config) {
  for (const char* key : kTexts) {
    if (!is_part(config.json(), key)) continue;
    return text_part(
        JsonReader(with_wrapper(config.json(), key), config.file(), config.pointer() + "/" + key));
  }
  return config;
}

}  // namespace rehearse
