#include "kernels/communicate/exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "kernels/device.h"

namespace rehearse::kernels {

namespace {

bool must_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

[[noreturn]] void gone() {
  throw DeviceError(std::string("another rank cannot be reached: ") + std::strerror(errno));
}

bool send_some(Outgoing& out) {
  const ssize_t sent = ::send(out.to->descriptor(), out.data, out.bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && must_wait()) return false;
  if (sent < 0) gone();
  out.data = static_cast<const std::byte*>(out.data) + sent;
  out.bytes -= static_cast<std::size_t>(sent);
  return true;
}

bool receive_some(Incoming& in) {
  const ssize_t got = ::recv(in.from->descriptor(), in.data, in.bytes, MSG_DONTWAIT);
  if (got < 0 && must_wait()) return false;
  if (got == 0) throw DeviceError("another rank has ended");
  if (got < 0) gone();
  in.data = static_cast<std::byte*>(in.data) + got;
  in.bytes -= static_cast<std::size_t>(got);
  return true;
}

}  // namespace

void exchange(Outgoing out, Incoming in, const std::function<void()>& still_on) {
  while (out.bytes > 0 || in.bytes > 0) {
    bool moved = false;
    if (out.bytes > 0) moved = send_some(out);
    if (in.bytes > 0) moved = receive_some(in) || moved;
    if (moved) continue;
    pollfd ends[2] = {};
    nfds_t count = 0;
    if (out.bytes > 0) ends[count++] = {out.to->descriptor(), POLLOUT, 0};
    if (in.bytes > 0) ends[count++] = {in.from->descriptor(), POLLIN, 0};
    if (poll(ends, count, kAskMilliseconds) == 0) still_on();
  }
}

}  // namespace rehearse::kernels
