// Bytes to one rank and from another at the same time.
#pragma once

#include <cstddef>
#include <functional>

#include "kernels/communicate/socket.h"

namespace rehearse::kernels {

struct Outgoing {
  const Socket* to = nullptr;
  const void* data = nullptr;
  std::size_t bytes = 0;
};
struct Incoming {
  const Socket* from = nullptr;
  void* data = nullptr;
  std::size_t bytes = 0;
};

// Neither waits for the other, so that rings and swaps cannot lock up; a socket may be both. `still_on` is
// asked while nothing moves, and throws when there is nothing to wait for any more. DeviceError when an end
// is gone.
void exchange(Outgoing out, Incoming in, const std::function<void()>& still_on);

}  // namespace rehearse::kernels
