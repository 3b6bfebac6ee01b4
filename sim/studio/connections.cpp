#include "studio/connections.h"

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
#include <utility>

namespace rehearse::studio {

namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kLength = "\r\ncontent-length:";
constexpr int kNextLook_ms = 250;
constexpr std::size_t kMostLeaving = 64;

// To read on before the socket is closed: one that is closed with bytes unread takes back what was written.
constexpr double kFarewell_s = 0.5;

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

std::string busy_answer() {
  return "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: "
         "close\r\n\r\n";
}

Connections::Connections(const Limits& limits, Ready ready) : limits_(limits), ready_(std::move(ready)) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("cannot make a pipe");
  wake_read_ = ends[0];
  wake_write_ = ends[1];
  thread_ = std::thread([this] { watch(); });
}

Connections::~Connections() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  static_cast<void>(write(wake_write_, "", 1));
  thread_.join();
  for (const int socket : arrived_) close(socket);
  close(wake_read_);
  close(wake_write_);
}

void Connections::admit(int socket) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  {
    const std::lock_guard lock(mutex_);
    arrived_.push_back(socket);
  }
  static_cast<void>(write(wake_write_, "", 1));  // a full pipe wakes as well
}

void Connections::answer(int socket, std::string bytes) {
  {
    const std::lock_guard lock(mutex_);
    answers_.emplace_back(socket, std::move(bytes));
  }
  static_cast<void>(write(wake_write_, "", 1));
}

void Connections::watch() {
  while (take_in()) {
    keep_limits();
    go_on();
  }
  const auto is_sending = [](const Connection& each) { return each.state == State::sending; };
  const Clock::time_point last = Clock::now() + std::chrono::milliseconds(500);
  while (std::ranges::any_of(connections_, is_sending) && Clock::now() < last) go_on();
  for (Connection& connection : connections_) end(connection);
}

bool Connections::take_in() {
  const std::lock_guard lock(mutex_);
  for (const int socket : arrived_) {
    connections_.emplace_back();
    connections_.back().socket = socket;
    enter(connections_.back(), State::receiving);
  }
  arrived_.clear();
  for (auto& [socket, bytes] : answers_) {
    const auto found = std::ranges::find(connections_, socket, &Connection::socket);
    found->bytes = std::move(bytes);
    enter(*found, State::sending);
  }
  answers_.clear();
  return !closing_;
}

void Connections::keep_limits() {
  const auto is_busy = [](const Connection& each) { return each.state != State::leaving; };
  auto busy = static_cast<std::size_t>(std::ranges::count_if(connections_, is_busy));
  for (Connection& connection : connections_) {
    if (busy <= limits_.count) break;
    if (connection.state != State::receiving) continue;
    connection.bytes = busy_answer();
    enter(connection, State::sending);
    --busy;
  }
  std::size_t all = connections_.size();
  for (Connection& connection : connections_) {
    if (all <= limits_.count + kMostLeaving) break;
    if (connection.state != State::leaving) continue;
    end(connection);
    --all;
  }
  std::size_t bytes = 0;
  for (const Connection& connection : connections_) bytes += waiting_bytes(connection);
  for (Connection& connection : connections_) {
    if (bytes <= limits_.answer_bytes) break;
    if (waiting_bytes(connection) == 0) continue;
    bytes -= waiting_bytes(connection);
    end(connection);
  }
  std::erase_if(connections_, [](const Connection& each) { return each.state == State::ended; });
}

// Waits until something can be done or it is time that somebody goes, and does it.
void Connections::go_on() {
  std::vector<pollfd> files = {{wake_read_, POLLIN, 0}};
  for (const Connection& each : connections_) {
    const short events = each.state == State::sending ? POLLOUT : POLLIN;
    files.push_back({each.state == State::answering ? -1 : each.socket, events, 0});
  }
  poll(files.data(), files.size(), connections_.empty() ? -1 : kNextLook_ms);
  std::array<char, 256> calls;
  while (::read(wake_read_, calls.data(), calls.size()) > 0) {
  }
  std::size_t i = 1;
  for (Connection& connection : connections_) {
    if (files[i++].revents != 0) step(connection);
    if (is_late(connection)) end(connection);
  }
  std::erase_if(connections_, [](const Connection& each) { return each.state == State::ended; });
}

void Connections::step(Connection& connection) {
  switch (connection.state) {
    case State::receiving:
      return receive(connection);
    case State::sending:
      return send_some(connection);
    case State::leaving: {
      std::array<char, 16384> ignored;
      const ssize_t count = ::read(connection.socket, ignored.data(), ignored.size());
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) end(connection);
      return;
    }
    case State::answering:
    case State::ended:
      return;
  }
}

void Connections::receive(Connection& connection) {
  std::array<char, 16384> some;
  const ssize_t count = ::read(connection.socket, some.data(), some.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return end(connection);
  connection.bytes.append(some.data(), static_cast<std::size_t>(count));
  const std::size_t has = connection.bytes.size(), whole = request_size(connection.bytes);
  const bool is_whole = whole > 0 && has >= whole;
  // What is too long needs no more to be refused.
  if (!is_whole && has <= limits_.request_bytes && whole <= limits_.request_bytes) return;
  enter(connection, State::answering);
  ready_(connection.socket, std::exchange(connection.bytes, {}));
}

void Connections::send_some(Connection& connection) {
  while (connection.sent < connection.bytes.size()) {
    const ssize_t count = send(connection.socket, connection.bytes.data() + connection.sent,
                               connection.bytes.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0) return end(connection);
    connection.sent += static_cast<std::size_t>(count);
  }
  shutdown(connection.socket, SHUT_WR);
  enter(connection, State::leaving);
}

bool Connections::is_late(const Connection& connection) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - connection.since).count();
  if (connection.state == State::answering) return false;
  return seconds > (connection.state == State::leaving ? kFarewell_s : limits_.seconds);
}

void Connections::enter(Connection& connection, State state) {
  connection.state = state;
  connection.since = Clock::now();
}

void Connections::end(Connection& connection) {
  if (connection.state != State::ended) close(connection.socket);
  enter(connection, State::ended);
}

std::size_t Connections::waiting_bytes(const Connection& connection) {
  return connection.state == State::sending ? connection.bytes.size() - connection.sent : 0;
}

}  // namespace rehearse::studio
