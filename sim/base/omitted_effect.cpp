#include "base/omitted_effect.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "base/error.h"

namespace rehearse {

bool OmittedEffect::has(const std::string& change) const {
  return std::ranges::count(changes, change) > 0;
}

const std::vector<std::string>& cost_changes() {
  static const std::vector<std::string> words = {kLessMemory, kMoreMemory, kLessTime, kMoreTime};
  return words;
}

std::vector<std::string> changes_of(const std::string& words) {
  constexpr const char* kBetween = ", ";
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(kBetween, begin), words.size());
    found.push_back(words.substr(begin, end - begin));
    if (std::ranges::count(cost_changes(), found.back()) == 0)
      throw std::logic_error("no such change of cost: " + found.back());
    begin = end + 2;
  }
  return found;
}

bool any_has(const std::vector<OmittedEffect>& effects, const std::string& change) {
  return std::ranges::any_of(effects, [&](const OmittedEffect& effect) { return effect.has(change); });
}

std::string in_words(const std::vector<OmittedEffect>& effects) {
  if (effects.empty()) return "";
  std::vector<std::string> options;
  for (const OmittedEffect& effect : effects)
    options.push_back(fmt::format("{} ({})", effect.option, join(effect.changes)));
  const bool memory = any_has(effects, kLessMemory) || any_has(effects, kMoreMemory);
  const bool time = any_has(effects, kLessTime) || any_has(effects, kMoreTime);
  return fmt::format("not a verdict: {} {} not counted, which can change {} by more than 10 %", join(options),
                     options.size() > 1 ? "are" : "is",
                     memory && time ? "memory and step time"
                     : memory       ? "memory"
                                    : "the step time");
}

}  // namespace rehearse
