// Does a file's name match the kind of data that will be written to it?
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <string>

namespace rehearse {

// For a flag that writes one kind of picture or page: the reason to refuse a name with the ending of another
// kind. Any other name is accepted.
inline std::function<std::string(const std::string&)> named_as(const std::string& own) {
  return [own](const std::string& file) {
    constexpr std::array kEndings = {".svg", ".png", ".html", ".pdf", ".jpg", ".jpeg", ".json", ".csv"};
    const std::string ending = std::filesystem::path(file).extension();
    const bool is_other =
        ending != own && std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
    if (!is_other) return std::string();
    const std::string stem = file.substr(0, file.size() - ending.size());
    const bool has_flag = ending == ".png" || ending == ".html" || ending == ".svg";
    return fmt::format("writes {}, not {} (found {}); nearest legal: {}{}{}", own.substr(1), ending.substr(1),
                       file, stem, own, has_flag ? fmt::format(", or --{} {}", ending.substr(1), file) : "");
  };
}

}  // namespace rehearse
