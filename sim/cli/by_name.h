// Which values do the words of a scenario name?
#pragma once

#include <fmt/core.h>

#include <array>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

template <typename Enum, std::size_t N>
std::map<std::string, Enum> by_name(const std::array<Enum, N>& values) {
  std::map<std::string, Enum> names;
  for (const Enum value : values) names[to_string(value)] = value;
  return names;
}

// Of the field `key`: an array of names, or text with commas. InputError says `unknown` of another word.
template <typename Enum>
std::vector<Enum> read_names(const JsonReader& json, const char* key,
                             const std::map<std::string, Enum>& names, const char* unknown) {
  const Json& given = json.value(key);
  std::vector<std::string> words, known;
  if (given.is_string()) {
    std::istringstream list(given.get<std::string>());
    for (std::string word; std::getline(list, word, ',');) words.push_back(word);
  } else if (given.is_array()) {
    for (const Json& entry : given)
      words.push_back(entry.is_string() ? entry.get<std::string>() : entry.dump());
  } else {
    json.fail(key, "must be an array of module names", "found " + given.dump());
  }
  for (const auto& [name, value] : names) known.push_back(name);
  std::vector<Enum> values;
  for (const std::string& word : words) {
    if (!names.contains(word)) json.fail(key, unknown, fmt::format("found \"{}\"", word), join(known));
    values.push_back(names.at(word));
  }
  return values;
}

}  // namespace rehearse
