#include "frameworks/nemo_words.h"

#include <algorithm>

namespace rehearse {

namespace {

constexpr const char* kWords = "MODEL_ARGS";
constexpr std::size_t kMaxWords = 4096;  // of any command line

Json plain(const Json& value) {
  return value.is_string() ? plain_yaml(value.get<std::string>()) : value;
}

}  // namespace

NemoWords nemo_words_of(const Json& yaml) {
  if (!yaml.is_object() || !yaml.contains(kWords) || !yaml[kWords].is_object()) return NemoWords::none;
  const Json& words = yaml[kWords];
  if (words.size() > kMaxWords) return NemoWords::none;
  NemoWords found = NemoWords::none;
  for (const auto& [name, value] : words.items()) {
    if (name.starts_with("trainer.strategy.")) return NemoWords::nemo_2;
    if (name.starts_with("model.") || name.starts_with("trainer.")) found = NemoWords::nemo_1;
  }
  return found;
}

YamlText nested_nemo_words(const YamlText& yaml) {
  YamlText nested;
  nested.json = Json::object();
  for (const auto& [name, value] : yaml.json[kWords].items()) {
    set_at_path(nested.json, name, plain(value));
    std::string pointer = "/" + pointer_step(name);
    std::ranges::replace(pointer, '.', '/');
    nested.lines[pointer] = yaml.line(std::string("/") + kWords + "/" + pointer_step(name));
  }
  return nested;
}

}  // namespace rehearse
