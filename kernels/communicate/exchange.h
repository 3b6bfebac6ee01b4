// How are bytes sent to one rank and received from another at the same time?
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

// Neither direction waits for the other, so that rings and swaps cannot deadlock. Both may use one socket.
// `still_on` is called while no bytes move; it throws when waiting has become useless. DeviceError when a
// peer is gone.
void exchange(Outgoing out, Incoming in, const std::function<void()>& still_on);

}  // namespace rehearse::kernels
