#include "plan/rules/broken_rule.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace rehearse {

namespace {

std::vector<std::string> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(std::min(at + separator.size(), text.size()));
  }
  return parts;
}

Settings parse(const std::string& field, const std::string& words) {
  constexpr std::string_view kIs = " = ";
  Settings settings;
  for (const std::string& part : parts_of(words, " with ")) {
    const std::size_t at = part.find(kIs);
    if (at == std::string::npos)
      settings.push_back({field, part});
    else
      settings.push_back({part.substr(0, at), part.substr(at + kIs.size())});
  }
  return settings;
}

std::vector<Settings> settings_of(const std::string& field, const std::vector<std::int64_t>& values) {
  std::vector<Settings> all;
  for (const std::int64_t value : values) all.push_back({{field, std::to_string(value)}});
  return all;
}

}  // namespace

std::vector<Remedy> Remedies::of(const std::string& field) const {
  std::vector<Remedy> all;
  for (const ValueSearch& search : searches_) {
    const Near near = search.find();
    all.push_back({settings_of(search.field, near.below), settings_of(search.field, near.above)});
  }
  for (const std::string& words : parts_of(words_, ", or ")) all.push_back({{parse(field, words)}, {}});
  return all;
}

ValueSearch exactly(const std::string& field, std::int64_t value) {
  return {field, [value] { return Near{{value}, {}}; }};
}

ValueSearch numbers_near(const std::string& field, std::int64_t wanted, std::int64_t most,
                         std::function<bool(std::int64_t)> legal) {
  return {field, [wanted, most, legal = std::move(legal)] { return numbers_around(wanted, most, legal); }};
}

ValueSearch multiples_near(const std::string& field, std::int64_t wanted, std::int64_t most,
                           std::int64_t unit) {
  return {field, [wanted, most, unit] { return multiples_around(wanted, most, unit); }};
}

}  // namespace rehearse
