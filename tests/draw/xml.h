// Is a text well-formed XML, as far as our pictures use it? Tags balance, attributes are quoted, text is
// escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse::test {

// Are these attributes: name="value", each after a space, with an optional slash at the end?
inline bool are_attributes(std::string_view text) {
  while (text.starts_with(' ')) {
    text.remove_prefix(1);
    const std::size_t equals = text.find("=\"");
    if (equals == 0 || equals == std::string_view::npos) return false;
    if (text.substr(0, equals).find_first_of(" \"'=") != std::string_view::npos) return false;
    const std::size_t end = text.find('"', equals + 2);
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
  return text.empty() || text == "/";
}

inline bool has_bare_ampersand(std::string_view xml) {
  for (std::size_t at = xml.find('&'); at != std::string_view::npos; at = xml.find('&', at + 1)) {
    bool known = false;
    for (const char* entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"})
      known |= xml.substr(at).starts_with(entity);
    if (!known) return true;
  }
  return false;
}

// "" when well-formed, else the error.
inline std::string xml_error(std::string_view xml) {
  if (has_bare_ampersand(xml)) return "bare ampersand";
  std::vector<std::string_view> open;
  for (std::size_t at = xml.find('<'); at != std::string_view::npos; at = xml.find('<', at)) {
    const std::size_t end = xml.find_first_of("<>", at + 1);
    if (end == std::string_view::npos || xml[end] == '<') return "tag without end at " + std::to_string(at);
    const std::string_view tag = xml.substr(at + 1, end - at - 1);
    at = end;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "unexpected " + std::string(tag);
      open.pop_back();
      continue;
    }
    const std::string_view name = tag.substr(0, tag.find_first_of(" /"));
    if (name.empty() || !are_attributes(tag.substr(name.size()))) return "bad tag " + std::string(tag);
    if (!tag.ends_with('/')) open.push_back(name);
  }
  return open.empty() ? "" : "unclosed " + std::string(open.back());
}

}  // namespace rehearse::test
