// A client of a server on this machine that sends any bytes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

namespace rehearse {

class TcpClient {
 public:
  explicit TcpClient(int port, int buffer_bytes = 0)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (buffer_bytes > 0) setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  TcpClient(TcpClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  TcpClient& operator=(TcpClient&&) = delete;
  ~TcpClient() {
    if (socket_ >= 0) close(socket_);
  }

  // False when the server has closed the connection.
  bool say(const std::string& text) const {
    return send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }

  // Until the server closes the connection.
  std::string answer() const {
    const timeval limit = {30, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::string text;
    std::array<char, 4096> some;
    while (true) {
      const ssize_t count = read(socket_, some.data(), some.size());
      if (count <= 0) return count == 0 || errno == ECONNRESET ? text : text + "(still open)";
      text.append(some.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  int socket_;
};

}  // namespace rehearse
