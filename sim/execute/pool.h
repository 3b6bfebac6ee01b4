// Which memory do tensors use that live shorter than an iteration?
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "kernels/device.h"

namespace rehearse {

// Shared by all of its readers. It returns to its pool with the last of them.
using Memory = std::shared_ptr<void>;

// Reuses memory that was returned by the time of issue. This is right for ops of one stream, which run in
// that order, and for ops of other streams that wait for it.
class Pool {
 public:
  explicit Pool(kernels::Device& device, kernels::Place place = kernels::Place::device)
      : device_(device), place_(place) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  Memory take(std::size_t bytes) {
    std::vector<void*>& free = free_[bytes];
    if (free.empty()) {
      all_.emplace_back(device_, bytes, place_);
      free.push_back(all_.back().data());
    }
    void* memory = free.back();
    free.pop_back();
    live_ += bytes;
    peak_ = std::max(peak_, live_);
    return {memory, [this, bytes](void* returned) {
              live_ -= bytes;
              free_[bytes].push_back(returned);
            }};
  }

  std::size_t peak_bytes() const { return peak_; }

 private:
  kernels::Device& device_;
  kernels::Place place_;
  std::vector<kernels::Buffer> all_;
  std::map<std::size_t, std::vector<void*>> free_;
  std::size_t live_ = 0, peak_ = 0;
};

}  // namespace rehearse
