#include "run/misaligned.h"

#include <fmt/core.h>

#include "cost/gemm_kind.h"

namespace rehearse {

std::string misaligned_products(const Work& work, const Plan& plan, const Profile& profile) {
  const std::string precision = plan.precision == Precision::fp8 ? "bf16" : to_string(plan.precision);
  std::string products;
  for (const Block& block : work.blocks) {
    for (const Kernel& kernel : block.forward) {
      const auto* gemm = std::get_if<Gemm>(&kernel.what);
      if (gemm == nullptr) continue;
      const GemmKind kind = gemm_kind(*gemm, precision);
      if (kind.align == 8 || known_gemms(profile, precision, kind).kind.align == 8) continue;
      const std::int64_t row = gemm->n % 8 != 0 ? gemm->n : gemm->k;
      products +=
          fmt::format("{}{} of the {} ({})", products.empty() ? "" : ", ", kernel.name, block.name, row);
    }
  }
  if (products.empty()) return products;
  return "rows of no multiple of 8 elements keep cuBLAS from loading 16 bytes at once, which slows its "
         "products "
         "several times: " +
         products + "; padded rows, as Megatron-LM's --make-vocab-size-divisible-by makes them, are faster";
}

}  // namespace rehearse
