#include "run/misaligned.h"

#include <fmt/core.h>

#include "cost/gemm_kind.h"
#include "plan/fp8.h"

namespace rehearse {

std::string misaligned_gemms(const Work& work, const Plan& plan, const Profile& profile) {
  std::string products;
  for (const Block& block : work.blocks) {
    for (const Kernel& kernel : block.forward) {
      const auto* gemm = std::get_if<Gemm>(&kernel.what);
      if (gemm == nullptr) continue;
      const std::string precision = to_string(precision_of(block, kernel, plan.precision));
      const GemmKind kind = gemm_kind(*gemm, precision);
      if (kind.align == 8 || known_gemms(profile, precision, kind).kind.align == 8) continue;
      const std::int64_t row = gemm->n % 8 != 0 ? gemm->n : gemm->k;
      products += fmt::format("{}{} of the {} ({}, nearest {})", products.empty() ? "" : ", ", kernel.name,
                              block.name, row, (row + 7) / 8 * 8);
    }
  }
  if (products.empty()) return products;
  return "cuBLAS is slow for GEMM rows that are not a multiple of 8 elements: " + products;
}

}  // namespace rehearse
