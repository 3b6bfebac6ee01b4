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

Refusal refusal(const Asked& asked) {
  const bool is_page = asked.path == "/", is_question = asked.path == "/run" || asked.path == "/refine";
  if (!is_page && !is_question) return {404, "there is no such page"};
  const bool reads = asked.method == "GET" || asked.method == "HEAD";
  if (is_page && !reads) return {405, "the page can be read only"};
  if (is_question && reads) return {404, "requests need POST"};
  if (is_question && asked.method != "POST") return {405, "requests need POST"};
  if (asked.is_encoded) return {is_page ? 400 : 411, "send the bytes as they are, with their length"};
  if (is_page) return {};
  if (!is_json(asked.content_type)) return {415, "requests need application/json"};
  if (!asked.has_length) return {411, "send the bytes as they are, with their length"};
  return {};
}

}  // namespace rehearse::studio
