// Which attributes does an opaque cuBLASLt object have?
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <map>

namespace cuda_on_cpu {

class Attributes {
 public:
  // False when the value is not as long as `expected`, that of the attribute.
  bool set(int attribute, const void* value, std::size_t bytes, std::size_t expected) {
    if (value == nullptr || bytes != expected) return false;
    std::memcpy(values_[attribute].data(), value, bytes);
    return true;
  }
  template <typename T>
  T get(int attribute, T otherwise) const {
    const auto found = values_.find(attribute);
    if (found != values_.end()) std::memcpy(&otherwise, found->second.data(), sizeof(T));
    return otherwise;
  }

 private:
  std::map<int, std::array<std::byte, 8>> values_;
};

}  // namespace cuda_on_cpu
