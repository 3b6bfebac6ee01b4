// Which values do the words of a scenario name?
#pragma once

#include <array>
#include <map>
#include <string>

namespace rehearse {

template <typename Enum, std::size_t N>
std::map<std::string, Enum> by_name(const std::array<Enum, N>& values) {
  std::map<std::string, Enum> names;
  for (const Enum value : values) names[to_string(value)] = value;
  return names;
}

}  // namespace rehearse
