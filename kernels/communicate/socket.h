// Bytes between two processes over TCP.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

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
  void send(const void* data, std::size_t bytes) const;  // DeviceError when the other end is gone
  void receive(void* data, std::size_t bytes) const;     // or says nothing for so long as it was allowed
  void allow_silence(double seconds) const;              // 0: for ever
  void hurry() const;                                    // small messages are not held back
  void shut() const;                                     // wakes who receives

 private:
  int descriptor_ = -1;
};

Socket listen_at(int port);  // port 0: any
int port_of(const Socket& listening);
std::string local_address_of(const Socket& connected);
Socket connect_to(const std::string& host, int port, double patience_s);  // tries until the time is over

// A length and so many bytes.
void send_text(const Socket& socket, const std::string& text);
std::string receive_text(const Socket& socket);

}  // namespace rehearse::kernels
