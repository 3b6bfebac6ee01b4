// Which known names are similar to an unknown one?
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

namespace rehearse {

// Changes only ASCII letters.
std::string in_lower_case(std::string text);

// At most `most` candidates similar to `name`, best first: equal except for case, beginning with it, near by
// edit distance (nearest_name()), containing it.
std::vector<std::string> similar_names(const std::string& name, const std::vector<std::string>& candidates,
                                       std::size_t most = 3);

// "a, b, c" for few names. Of many, similar ones come first and the rest is counted: "c, a and 58 more".
std::string some_names(const std::vector<std::string>& names, const std::string& name);

// A longer list of names is not printed completely in a message.
inline constexpr std::size_t kMaxListed = 12;

// The values of an enum by their names.
template <typename Enum, std::size_t N>
std::map<std::string, Enum> by_name(const std::array<Enum, N>& values) {
  std::map<std::string, Enum> names;
  for (const Enum value : values) names[to_string(value)] = value;
  return names;
}

}  // namespace rehearse
