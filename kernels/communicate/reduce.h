// Sums and maxima of two ranks' operands.
#pragma once

#include <algorithm>

#include "kernels/communicator.h"
#include "kernels/short_float.h"

namespace rehearse::kernels {

template <typename T>
void reduce(T* sum, const T* more, std::int64_t count, Reduction reduction) {
  if (reduction == Reduction::sum) {
    for (std::int64_t i = 0; i < count; ++i) sum[i] = static_cast<T>(sum[i] + more[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) sum[i] = std::max(sum[i], more[i]);
  }
}

// sum[i] becomes sum[i] + more[i], or the larger of both. 16-bit types are added in fp32 and rounded each
// time.
inline void reduce(Type type, void* sum, const void* more, std::int64_t count, Reduction reduction) {
  switch (type) {
    case Type::fp32:
      return reduce(static_cast<float*>(sum), static_cast<const float*>(more), count, reduction);
    case Type::int32:
      return reduce(static_cast<std::int32_t*>(sum), static_cast<const std::int32_t*>(more), count,
                    reduction);
    case Type::int64:
      return reduce(static_cast<std::int64_t*>(sum), static_cast<const std::int64_t*>(more), count,
                    reduction);
    case Type::bf16:
      return reduce(static_cast<Bf16*>(sum), static_cast<const Bf16*>(more), count, reduction);
    case Type::fp16:
      return reduce(static_cast<Fp16*>(sum), static_cast<const Fp16*>(more), count, reduction);
    default:
      throw DeviceError("the CPU sums fp32, bf16, fp16 and integers only");
  }
}

inline std::byte* offset(void* memory, std::int64_t elements, Type type) {
  return static_cast<std::byte*>(memory) + static_cast<std::size_t>(elements) * bytes_of(type);
}
inline const std::byte* offset(const void* memory, std::int64_t elements, Type type) {
  return static_cast<const std::byte*>(memory) + static_cast<std::size_t>(elements) * bytes_of(type);
}

// Requires elements(from) x times_from = elements(to) x times_to.
inline void require_contiguous(const Tensor& from, const Tensor& to, std::int64_t times_from,
                               std::int64_t times_to) {
  if (!from.contiguous() || !to.contiguous() || from.type != to.type ||
      from.elements() * times_from != to.elements() * times_to) {
    throw DeviceError("a collective's tensors must be contiguous, of one type, and as long as it needs");
  }
}

}  // namespace rehearse::kernels
