// TCP connections between two processes, by IPv4 or IPv6.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "kernels/device.h"

namespace rehearse::kernels {

// How often a thread that waits for a socket checks its deadline and the other ranks.
inline constexpr int kAskMilliseconds = 20;

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  int descriptor() const { return descriptor_; }
  void hurry() const;  // small messages are sent at once (TCP_NODELAY)
  void shut() const;   // wakes threads that wait for it

 private:
  int descriptor_ = -1;
};

class PortInUse : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// Called while no bytes move; throws when waiting has become useless.
using StillOn = std::function<void()>;

class Deadline {
 public:
  explicit Deadline(double seconds) : seconds_(seconds) {}
  double left_s() const {
    return seconds_ - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  bool has_passed() const { return left_s() <= 0; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double seconds_;
};

// Listens at all addresses of this machine; port 0: any. accept() does not block. PortInUse when another
// process uses the port.
Socket listen_at(int port);
int port_of(const Socket& listening);
std::string local_address_of(const Socket& connected);
std::string place_of(const std::string& host, int port);  // "node-a:29500", "[::1]:29500"

// Tries all addresses of the host repeatedly until one answers. DeviceError after the deadline.
Socket connect_to(const std::string& host, int port, const Deadline& deadline, const StillOn& still_on);

}  // namespace rehearse::kernels
