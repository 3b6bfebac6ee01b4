// Which known names are like one that nobody knows?
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

namespace rehearse {

// ASCII letters alone.
std::string in_lower_case(std::string text);

// At most `most` candidates like `name`, best first: equal but for the case of letters, beginning with it,
// near by edit distance (nearest_name()), containing it.
std::vector<std::string> similar_names(const std::string& name, const std::vector<std::string>& candidates,
                                       std::size_t most = 3);

// "a, b, c" of few names. Of many, those like `name` come first and the rest is counted: "c, a and 58 more".
std::string some_names(const std::vector<std::string>& names, const std::string& name);

// A list of more names is not printed whole in a message.
inline constexpr std::size_t kMaxListed = 12;

// The values of an enum by their names.
template <typename Enum, std::size_t N>
std::map<std::string, Enum> by_name(const std::array<Enum, N>& values) {
  std::map<std::string, Enum> names;
  for (const Enum value : values) names[to_string(value)] = value;
  return names;
}

}  // namespace rehearse
