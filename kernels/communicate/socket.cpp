#include "kernels/communicate/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace rehearse::kernels {

namespace {

constexpr int kTickMilliseconds = 20;

[[noreturn]] void fail(const std::string& what, int error = errno) {
  throw DeviceError(what + ": " + std::strerror(error));
}

// An IPv4 or IPv6 address, as system calls take it.
struct Endpoint {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&address); }
};

Endpoint own_end(const Socket& socket) {
  Endpoint own;
  if (getsockname(socket.descriptor(), own.get(), &own.length) != 0) fail("address");
  return own;
}

// Binds to IPv6, which accepts IPv4 too, or to IPv4 where the system has no IPv6.
Socket bound_to(int port, int family) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1, no = 0;
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (family == AF_INET6) setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  Endpoint any;
  any.address.ss_family = static_cast<sa_family_t>(family);
  any.length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  // Both families have the port at the same offset.
  reinterpret_cast<sockaddr_in*>(&any.address)->sin_port = htons(static_cast<std::uint16_t>(port));
  const bool bound = socket.descriptor() >= 0 && bind(socket.descriptor(), any.get(), any.length) == 0 &&
                     listen(socket.descriptor(), SOMAXCONN) == 0;
  return bound ? std::move(socket) : Socket();
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses addresses_of(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int found = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (found != 0) throw DeviceError("the address of rank 0, " + host + ": " + gai_strerror(found));
  return {list, freeaddrinfo};
}

// Returns 0, or the error number.
int try_to_connect(const Socket& socket, const addrinfo& address, const Deadline& deadline,
                   const StillOn& still_on) {
  if (socket.descriptor() < 0) return errno;
  if (connect(socket.descriptor(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd end = {socket.descriptor(), POLLOUT, 0};
  while (poll(&end, 1, kTickMilliseconds) <= 0) {
    still_on();
    if (deadline.has_passed()) return ETIMEDOUT;
  }
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Socket::hurry() const {
  const int yes = 1;
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void Socket::shut() const {
  ::shutdown(descriptor_, SHUT_RDWR);
}

Socket listen_at(int port) {
  const std::string what = "cannot listen at port " + std::to_string(port);
  Socket socket = bound_to(port, AF_INET6);
  if (socket.descriptor() < 0 && errno != EADDRINUSE) socket = bound_to(port, AF_INET);
  if (socket.descriptor() < 0 && errno == EADDRINUSE) throw PortInUse(what + ": another process does");
  if (socket.descriptor() < 0) fail(what);
  return socket;
}

int port_of(const Socket& listening) {
  Endpoint own = own_end(listening);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&own.address)->sin_port);
}

std::string local_address_of(const Socket& connected) {
  Endpoint own = own_end(connected);
  std::array<char, NI_MAXHOST> text = {};
  if (getnameinfo(own.get(), own.length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    fail("address");
  return text.data();
}

std::string place_of(const std::string& host, int port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]:" : host + ":") + std::to_string(port);
}

Socket connect_to(const std::string& host, int port, const Deadline& deadline, const StillOn& still_on) {
  constexpr double kTry_s = 2;  // one address of several may be unreachable
  const Addresses addresses = addresses_of(host, port);
  while (true) {
    int error = 0;
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
      Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const Deadline of_try(std::min(kTry_s, deadline.left_s()));
      error = try_to_connect(socket, *address, of_try, still_on);
      if (error != 0) continue;
      socket.hurry();
      return socket;
    }
    still_on();
    if (deadline.has_passed()) fail("no rank answers at " + place_of(host, port), error);
    std::this_thread::sleep_for(std::chrono::milliseconds(kTickMilliseconds));
  }
}

}  // namespace rehearse::kernels
