#include "studio/exchange.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace rehearse::studio {

namespace {

// A socket that is closed before all was read takes back what was written.
constexpr auto kFarewell = std::chrono::milliseconds(500);

}  // namespace

Exchange::Exchange(int socket, std::string request, double most_seconds)
    : socket_(socket), request_(std::move(request)), most_(most_seconds) {}

Exchange::~Exchange() {
  shutdown(socket_, SHUT_WR);
  const Clock::time_point until = Clock::now() + kFarewell;
  std::array<char, 16384> ignored;
  while (wait(POLLIN, until) && ::read(socket_, ignored.data(), ignored.size()) > 0) {
  }
  close(socket_);
}

bool Exchange::wait(short event, Clock::time_point until) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  pollfd file = {socket_, event, 0};
  return left.count() > 0 && poll(&file, 1, static_cast<int>(left.count())) > 0;
}

ssize_t Exchange::read(char* bytes, size_t size) {
  const std::size_t count = request_.copy(bytes, size, read_);
  read_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Exchange::write(const char* bytes, size_t size) {
  if (until_ == Clock::time_point::max())
    until_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(most_);
  while (true) {
    const ssize_t count = send(socket_, bytes, size, MSG_NOSIGNAL);
    if (count >= 0) return count;
    if (errno != EINTR && (errno != EAGAIN || !wait(POLLOUT, until_))) return -1;
  }
}

void Exchange::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = "127.0.0.1";
  port = 0;
}

void Exchange::get_local_ip_and_port(std::string& ip, int& port) const {
  get_remote_ip_and_port(ip, port);
}

}  // namespace rehearse::studio
