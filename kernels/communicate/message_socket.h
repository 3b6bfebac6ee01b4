// Messages over a connection: a length, then the bytes. No function waits for the other end, except send().
#pragma once

#include <optional>

#include "kernels/communicate/socket.h"

namespace rehearse::kernels {

// One thread may send while another receives.
class MessageSocket {
 public:
  explicit MessageSocket(Socket socket) : socket_(std::move(socket)) {}

  const Socket& socket() const { return socket_; }
  short awaits() const;  // events for poll(): writable while bytes are unsent, else readable

  // put() queues a message; flush() sends as much as the other end accepts and returns true when all is sent.
  // DeviceError when the other end is gone.
  void put(const std::string& text);
  bool flush();
  // put() and flush() until all is sent.
  void send(const std::string& text, const Deadline& deadline);

  // The next message, once it has arrived completely. No byte after it is read. DeviceError when the other
  // end is gone or is not a rank.
  std::optional<std::string> next();
  // Seconds since an incomplete message began.
  double unfinished_s() const;

  Socket release() { return std::move(socket_); }  // for use after the last message

 private:
  Socket socket_;
  std::string unsent_, arrived_;
  std::chrono::steady_clock::time_point begun_ = {};
};

}  // namespace rehearse::kernels
