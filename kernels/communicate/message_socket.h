// Messages over a connection: a length and so many bytes. Nothing here waits for the other end.
#pragma once

#include <optional>

#include "kernels/communicate/socket.h"

namespace rehearse::kernels {

// One thread may send while another receives.
class MessageSocket {
 public:
  explicit MessageSocket(Socket socket) : socket_(std::move(socket)) {}

  const Socket& socket() const { return socket_; }
  short awaits() const;  // of poll(): to send while anything is unsent, else to receive

  // Sent by flush(), as far as the other end takes it; true when nothing is left. DeviceError when the other
  // end is gone.
  void put(const std::string& text);
  bool flush();
  // put() and flush() until all is sent.
  void send(const std::string& text, const Deadline& deadline);

  // The next message, when all of it has come. It takes no byte behind it. DeviceError when the other end is
  // gone or no rank.
  std::optional<std::string> next();
  // Since a message began of which a part is missing.
  double unfinished_s() const;

  Socket release() { return std::move(socket_); }  // when what follows are no messages

 private:
  Socket socket_;
  std::string unsent_, arrived_;
  std::chrono::steady_clock::time_point begun_ = {};
};

}  // namespace rehearse::kernels
