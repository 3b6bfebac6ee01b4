// TCP connections between two processes, by IPv4 or IPv6.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "kernels/device.h"

namespace rehearse::kernels {

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
  void hurry() const;  // small messages are not held back
  void shut() const;   // wakes who waits for it

 private:
  int descriptor_ = -1;
};

class PortInUse : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// Asked while nothing moves; throws when there is nothing to wait for any more.
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

// At all addresses of this machine; port 0: any. To accept does not wait. PortInUse when another process has
// it.
Socket listen_at(int port);
int port_of(const Socket& listening);
std::string local_address_of(const Socket& connected);
std::string place_of(const std::string& host, int port);  // "node-a:29500", "[::1]:29500"

// Tries all addresses of the host again and again until one answers. DeviceError after the deadline.
Socket connect_to(const std::string& host, int port, const Deadline& deadline, const StillOn& still_on);

}  // namespace rehearse::kernels
