// In which buffer does one stream put data that another stream reads meanwhile?
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "kernels/device.h"

namespace rehearse {

// Two buffers of each size, so that one is filled while the other is emptied. More where more are in use at
// once.
class DoubleBuffers {
 public:
  explicit DoubleBuffers(kernels::Device& device) : device_(device) {}

  // `filler` waits until the buffer's previous content has been read.
  void* take(std::size_t bytes, kernels::Stream& filler) {
    Size& size = sizes_[bytes];
    if (size.made.size() < 2 || size.emptied.empty()) return size.made.emplace_back(device_, bytes).data();
    const Emptied oldest = size.emptied.front();
    size.emptied.pop_front();
    filler.wait(oldest.read);
    return oldest.buffer;
  }

  // The buffer's content has been read once `read` has happened.
  void give_back(void* buffer, std::size_t bytes, std::shared_ptr<kernels::Event> read) {
    sizes_[bytes].emptied.push_back({buffer, std::move(read)});
  }

 private:
  struct Emptied {
    void* buffer = nullptr;
    std::shared_ptr<kernels::Event> read;
  };
  struct Size {
    std::vector<kernels::Buffer> made;
    std::deque<Emptied> emptied;
  };

  kernels::Device& device_;
  std::map<std::size_t, Size> sizes_;
};

}  // namespace rehearse
