#include "studio/lobby.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace rehearse::studio {

namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kLength = "\r\ncontent-length:";

// What is behind the colon of Content-Length; 0 where there is none or it is no number.
std::size_t content_length(const std::string& head) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  const auto found = std::search(head.begin(), head.end(), kLength.begin(), kLength.end(), same);
  if (found == head.end()) return 0;
  const char* begin = &*found + kLength.size();
  const char* end = head.data() + head.size();
  while (begin < end && *begin == ' ') ++begin;
  std::size_t length = 0;
  return std::from_chars(begin, end, length).ec == std::errc() ? length : 0;
}

}  // namespace

std::size_t request_size(const std::string& bytes) {
  const std::size_t end = bytes.find(kHeadEnd);
  if (end == std::string::npos) return 0;
  const std::size_t head = end + kHeadEnd.size(), body = content_length(bytes.substr(0, head));
  return body > SIZE_MAX - head ? SIZE_MAX : head + body;
}

Lobby::Lobby(const Limits& limits, Ready ready) : limits_(limits), ready_(std::move(ready)) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("cannot make a pipe");
  wake_read_ = ends[0];
  wake_write_ = ends[1];
  thread_ = std::thread([this] { watch(); });
}

Lobby::~Lobby() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  static_cast<void>(write(wake_write_, "", 1));
  thread_.join();
  for (const Visitor& visitor : arrived_) close(visitor.socket);
  close(wake_read_);
  close(wake_write_);
}

void Lobby::admit(int socket) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  {
    const std::lock_guard lock(mutex_);
    arrived_.push_back({socket, Clock::now(), {}});
  }
  static_cast<void>(write(wake_write_, "", 1));  // a full pipe wakes as well
}

void Lobby::watch() {
  std::list<Visitor> visitors;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (closing_) break;
      visitors.splice(visitors.end(), arrived_);
    }
    while (visitors.size() > limits_.most_waiting) {
      close(visitors.front().socket);
      visitors.pop_front();
    }
    look_at(visitors);
  }
  for (const Visitor& visitor : visitors) close(visitor.socket);
}

// Waits until something comes or it is time that somebody goes.
void Lobby::look_at(std::list<Visitor>& visitors) {
  std::vector<pollfd> files = {{wake_read_, POLLIN, 0}};
  for (const Visitor& visitor : visitors) files.push_back({visitor.socket, POLLIN, 0});
  constexpr int kNextLook_ms = 250;
  poll(files.data(), files.size(), visitors.empty() ? -1 : kNextLook_ms);
  std::array<char, 256> calls;
  while (::read(wake_read_, calls.data(), calls.size()) > 0) {
  }
  std::size_t i = 1;
  for (auto visitor = visitors.begin(); visitor != visitors.end(); ++i) {
    const bool stays = files[i].revents == 0 || read(*visitor);
    if (is_whole(visitor->bytes)) {
      ready_(visitor->socket, std::move(visitor->bytes));
    } else if (stays && !is_late(*visitor)) {
      ++visitor;
      continue;
    } else {
      close(visitor->socket);
    }
    visitor = visitors.erase(visitor);
  }
}

// Or needs no more to be refused.
bool Lobby::is_whole(const std::string& bytes) const {
  const std::size_t size = request_size(bytes);
  return bytes.size() > limits_.most_bytes ||
         (size > 0 && (bytes.size() >= size || size > limits_.most_bytes));
}

bool Lobby::is_late(const Visitor& visitor) const {
  return std::chrono::duration<double>(Clock::now() - visitor.came).count() > limits_.most_seconds;
}

// False at the end of the connection.
bool Lobby::read(Visitor& visitor) {
  std::array<char, 16384> some;
  const ssize_t count = ::read(visitor.socket, some.data(), some.size());
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  visitor.bytes.append(some.data(), static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace rehearse::studio
