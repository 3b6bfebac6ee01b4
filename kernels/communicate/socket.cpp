#include "kernels/communicate/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

#include "kernels/device.h"

namespace rehearse::kernels {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw DeviceError(what + ": " + std::strerror(errno));
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Socket::send(const void* data, std::size_t bytes) const {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(descriptor_, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) fail("another rank cannot be reached");
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

void Socket::receive(void* data, std::size_t bytes) const {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(descriptor_, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) throw DeviceError("another rank has ended");
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      throw DeviceError("another rank did not come in time");
    if (got < 0) fail("another rank cannot be heard");
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

void Socket::allow_silence(double seconds) const {
  const double whole = std::floor(seconds);
  const timeval limit{static_cast<time_t>(whole), static_cast<suseconds_t>(1e6 * (seconds - whole))};
  setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

void Socket::hurry() const {
  const int yes = 1;
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void Socket::shut() const {
  ::shutdown(descriptor_, SHUT_RDWR);
}

Socket listen_at(int port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.descriptor() < 0) fail("socket");
  const int yes = 1;
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  if (bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket.descriptor(), SOMAXCONN) != 0) {
    fail("rank 0 cannot listen at port " + std::to_string(port));
  }
  return socket;
}

int port_of(const Socket& listening) {
  sockaddr_in address = {};
  socklen_t length = sizeof address;
  if (getsockname(listening.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0) fail("port");
  return ntohs(address.sin_port);
}

std::string local_address_of(const Socket& connected) {
  sockaddr_in address = {};
  socklen_t length = sizeof address;
  if (getsockname(connected.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    fail("address");
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return text;
}

Socket connect_to(const std::string& host, int port, double patience_s) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPause = std::chrono::milliseconds(20);
  const auto begin = Clock::now();
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int found = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (found != 0) throw DeviceError("rank 0's address " + host + ": " + gai_strerror(found));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(list, freeaddrinfo);
  while (true) {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.descriptor(), list->ai_addr, list->ai_addrlen) == 0) {
      socket.hurry();
      return socket;
    }
    if (std::chrono::duration<double>(Clock::now() - begin).count() > patience_s) {
      fail("rank 0 does not answer at " + host + ":" + std::to_string(port));
    }
    std::this_thread::sleep_for(kPause);
  }
}

void send_text(const Socket& socket, const std::string& text) {
  const std::uint64_t bytes = text.size();
  std::string frame(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  frame += text;
  socket.send(frame.data(), frame.size());
}

std::string receive_text(const Socket& socket) {
  constexpr std::uint64_t kMost = 1 << 20;
  std::uint64_t bytes = 0;
  socket.receive(&bytes, sizeof bytes);
  if (bytes > kMost) throw DeviceError("something that is no rank spoke at rank 0's port");
  std::string text(bytes, '\0');
  socket.receive(text.data(), bytes);
  return text;
}

}  // namespace rehearse::kernels
