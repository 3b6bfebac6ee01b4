#include "kernels/communicate/message_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace rehearse::kernels {

namespace {

constexpr std::uint64_t kLargestMessage = 1 << 20;
constexpr std::size_t kHead = sizeof(std::uint64_t);

// Length of the whole message, as far as the bytes that arrived tell it.
std::size_t whole_length(const std::string& arrived) {
  if (arrived.size() < kHead) return kHead;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, arrived.data(), kHead);
  if (bytes > kLargestMessage) throw DeviceError("something that is no rank speaks here");
  return kHead + bytes;
}

}  // namespace

short MessageSocket::awaits() const {
  return unsent_.empty() ? POLLIN : POLLOUT;
}

void MessageSocket::put(const std::string& text) {
  const std::uint64_t bytes = text.size();
  unsent_.append(reinterpret_cast<const char*>(&bytes), sizeof bytes).append(text);
}

bool MessageSocket::flush() {
  while (!unsent_.empty()) {
    const ssize_t sent =
        ::send(socket_.descriptor(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (sent < 0) throw DeviceError(std::string("another rank cannot be reached: ") + std::strerror(errno));
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

void MessageSocket::send(const std::string& text, const Deadline& deadline) {
  put(text);
  while (!flush()) {
    if (deadline.has_passed()) throw DeviceError("another rank takes no messages");
    pollfd end = {socket_.descriptor(), POLLOUT, 0};
    poll(&end, 1, kAskMilliseconds);
  }
}

std::optional<std::string> MessageSocket::next() {
  std::array<char, 1 << 14> block;
  while (true) {
    const std::size_t missing = whole_length(arrived_) - arrived_.size();
    if (missing == 0) return std::exchange(arrived_, {}).substr(kHead);
    const ssize_t got =
        ::recv(socket_.descriptor(), block.data(), std::min(missing, block.size()), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (got < 0) throw DeviceError(std::string("another rank cannot be heard: ") + std::strerror(errno));
    if (got == 0) throw DeviceError("another rank has ended");
    if (arrived_.empty()) begun_ = std::chrono::steady_clock::now();
    arrived_.append(block.data(), static_cast<std::size_t>(got));
  }
}

double MessageSocket::unfinished_s() const {
  if (arrived_.empty()) return 0;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

}  // namespace rehearse::kernels
