#include "model/as.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace rehearse {

namespace {

// Keys that do not affect the network's cost.
constexpr std::array<std::string_view, 22> kNoCost = {"_name_or_path",
                                                      "architectures",
                                                      "auto_map",
                                                      "bos_token_id",
                                                      "decoder_start_token_id",
                                                      "eos_token_id",
                                                      "id2label",
                                                      "initializer_range",
                                                      "label2id",
                                                      "layer_norm_eps",
                                                      "layer_norm_epsilon",
                                                      "model_type",
                                                      "name",
                                                      "pad_token_id",
                                                      "rms_norm_eps",
                                                      "rope_theta",
                                                      "sep_token_id",
                                                      "task_specific_params",
                                                      "transformers_version",
                                                      "unk_token_id",
                                                      "use_cache",
                                                      "output_attentions"};

bool is_free(const std::string& key) {
  return key.starts_with('_') || std::ranges::find(kNoCost, key) != kNoCost.end();
}

std::string listed(const std::vector<std::string>& keys) {
  return keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", "));
}

}  // namespace

std::vector<std::string> unread_keys(const JsonReader& file, const FamilyConfig& config) {
  std::vector<std::string> unread;
  for (const auto& [key, value] : file.json().items())
    if (!is_free(key) && !config.file().asked().contains(key)) unread.push_back(key);
  return unread;
}

std::string keys_read_as(const JsonReader& file, const FamilyConfig& config) {
  std::vector<std::string> used, missing;
  for (const auto& [key, value] : file.json().items())
    if (!is_free(key) && config.file().asked().contains(key)) used.push_back(key);
  const auto note_missing = [&](const Json& parts) {
    for (const auto& [part, value] : parts.items()) {
      const std::string key = config.name(part);
      if (!config.file().asked().contains(key)) continue;
      const bool implied = config.family().implied.contains(part);
      if (!implied && !file.json().contains(key) && std::ranges::find(missing, key) == missing.end())
        missing.push_back(key);
    }
  };
  note_missing(config.family().absent);
  note_missing(config.family().names);
  return fmt::format(
      "read as {}. Keys used: {}. Keys ignored: {}. Keys missing, for which the class's own "
      "values stand: {}",
      config.family().model_type, listed(used), listed(unread_keys(file, config)), listed(missing));
}

}  // namespace rehearse
