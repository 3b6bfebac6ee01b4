#include "plan/fp8.h"

namespace rehearse {

bool multiplies_fp8(const Block& block, const Kernel& kernel, Precision precision) {
  return precision == Precision::fp8 && std::holds_alternative<Gemm>(kernel.what) &&
         block.tensors[static_cast<std::size_t>(kernel.reads.front())].element_bytes == 1;
}

Precision precision_of(const Block& block, const Kernel& kernel, Precision precision) {
  const bool is_bf16 = precision == Precision::fp8 && !multiplies_fp8(block, kernel, precision);
  return is_bf16 ? Precision::bf16 : precision;
}

}  // namespace rehearse
