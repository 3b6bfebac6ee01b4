#include "studio/guard.h"

#include <array>

namespace rehearse::studio {

namespace {

constexpr std::array<std::string_view, 3> kNames = {"127.0.0.1", "localhost", "[::1]"};

}  // namespace

bool is_own_host(std::string_view host, int port) {
  for (const std::string_view name : kNames) {
    std::string own(name);
    own += ':';
    own += std::to_string(port);
    if (host == own || (port == 80 && host == name)) return true;
  }
  return false;
}

bool is_own_origin(std::string_view origin, int port) {
  constexpr std::string_view kScheme = "http://";
  if (origin.empty()) return true;
  return origin.starts_with(kScheme) && is_own_host(origin.substr(kScheme.size()), port);
}

bool is_json(std::string_view content_type) {
  return content_type.substr(0, content_type.find(';')) == "application/json";
}

}  // namespace rehearse::studio
