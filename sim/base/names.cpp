#include "base/names.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace rehearse {

namespace {

constexpr std::size_t kLongestAsked =
    200;  // beyond any name; an input may put a whole file in a name's place

}  // namespace

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return text;
}

std::vector<std::string> similar_names(const std::string& name, const std::vector<std::string>& candidates,
                                       std::size_t most) {
  if (name.empty() || name.size() > kLongestAsked) return {};
  const std::string asked = in_lower_case(name);
  std::vector<std::string> small, left = candidates;
  // Shorter names come first: they differ least from the requested name.
  std::ranges::stable_sort(left, {}, [](const std::string& each) { return each.size(); });
  for (const std::string& each : left) small.push_back(in_lower_case(each));
  std::vector<std::string> found;
  const auto take = [&](std::size_t index) {
    const auto at = static_cast<std::ptrdiff_t>(index);
    found.push_back(left[index]);
    left.erase(left.begin() + at);
    small.erase(small.begin() + at);
  };
  const auto take_all = [&](const auto& is_like) {
    for (std::size_t i = 0; i < small.size() && found.size() < most;) is_like(small[i]) ? take(i) : void(++i);
  };
  take_all([&](const std::string& each) { return each == asked; });
  take_all([&](const std::string& each) { return each.starts_with(asked); });
  while (found.size() < most) {
    const std::string nearest = nearest_name(asked, small);
    if (nearest.empty()) break;
    take(static_cast<std::size_t>(std::ranges::find(small, nearest) - small.begin()));
  }
  take_all([&](const std::string& each) { return each.find(asked) != std::string::npos; });
  return found;
}

std::string some_names(const std::vector<std::string>& names, const std::string& name) {
  if (names.size() <= kMaxListed) return join(names);
  std::vector<std::string> shown = similar_names(name, names);
  for (const std::string& each : names)
    if (shown.size() < kMaxListed && std::ranges::find(shown, each) == shown.end()) shown.push_back(each);
  return fmt::format("{} and {} more", join(shown), names.size() - shown.size());
}

}  // namespace rehearse
