#include "studio/exchange.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace rehearse::studio {

namespace {

bool is_range(std::string_view line) {
  constexpr std::string_view kName = "range";
  const auto same = [](char lower, char any) {
    return std::tolower(static_cast<unsigned char>(any)) == lower;
  };
  return line.size() > kName.size() && std::equal(kName.begin(), kName.end(), line.begin(), same);
}

std::string without_ranges(const std::string& request) {
  const std::size_t head = std::min(request.find("\r\n\r\n"), request.size());
  std::string kept;
  std::size_t at = 0;
  while (at < head) {
    const std::size_t end = std::min(request.find('\n', at), request.size() - 1) + 1;
    if (at == 0 || !is_range(std::string_view(request).substr(at, end - at)))
      kept.append(request, at, end - at);
    at = end;
  }
  return kept.append(request, at);
}

}  // namespace

Exchange::Exchange(const std::string& request) : request_(without_ranges(request)) {}

ssize_t Exchange::read(char* bytes, size_t size) {
  const std::size_t count = request_.copy(bytes, size, read_);
  read_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Exchange::write(const char* bytes, size_t size) {
  answer_.append(bytes, size);
  return static_cast<ssize_t>(size);
}

void Exchange::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = "127.0.0.1";
  port = 0;
}

void Exchange::get_local_ip_and_port(std::string& ip, int& port) const {
  get_remote_ip_and_port(ip, port);
}

}  // namespace rehearse::studio
