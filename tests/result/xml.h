// Is a text well-formed XML, as far as our pictures use it? Tags balance, attributes are quoted, text is
// escaped.
#pragma once

#include <regex>
#include <string>
#include <vector>

namespace rehearse::test {

// "" when well-formed, else what is wrong.
inline std::string xml_error(const std::string& xml) {
  static const std::regex attributes(R"((\s+[a-zA-Z:-]+="[^"<]*")*\s*/?)");
  static const std::regex entity("&(amp|lt|gt|quot|#39);");
  if (std::regex_replace(xml, entity, "").find('&') != std::string::npos) return "bare ampersand";
  std::vector<std::string> open;
  std::size_t at = 0;
  while ((at = xml.find('<', at)) != std::string::npos) {
    const std::size_t end = xml.find_first_of("<>", at + 1);
    if (end == std::string::npos || xml[end] == '<') return "tag without end at " + std::to_string(at);
    std::string tag = xml.substr(at + 1, end - at - 1);
    at = end;
    if (tag.front() == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "unexpected </" + tag.substr(1);
      open.pop_back();
      continue;
    }
    const std::size_t name = tag.find_first_of(" /");
    // The attributes of long paths would overflow the recursion of std::regex.
    if (tag.size() < 2000 && name != std::string::npos && !std::regex_match(tag.substr(name), attributes))
      return "bad attributes in <" + tag;
    if (tag.back() != '/') open.push_back(tag.substr(0, name));
  }
  return open.empty() ? "" : "unclosed <" + open.back();
}

}  // namespace rehearse::test
