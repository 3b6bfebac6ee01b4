// Which samples of a profile does a GEMM belong to?
#pragma once

#include <string>
#include <vector>

#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse {

// Properties that distinguish GEMMs of one precision, beside their shapes.
struct GemmKind {
  GemmPass pass = GemmPass::forward;
  bool grouped = false;
  int align = 8;  // elements that a load of an operand brings: 8, 2 or 1
};

// cuBLAS loads 16 bytes at once only where every row starts at a multiple of 16 bytes. For other 16-bit
// operands it takes CUTLASS kernels that load two elements (align2). For odd rows it takes those that load
// one (align1, the kernels of Turing): JihaoXin/GAC, table "cuBLAS GEMM kernel tiers". Rows have k and n
// elements forward, m and n elements for weight gradients. Operands of other sizes count as aligned.
GemmKind gemm_kind(const Gemm& gemm, const std::string& precision);

// How a profile names the GEMMs of a kind: "fp16", "fp16/weight_gradient", "fp16/grouped/input_gradient",
// "fp16/align1".
std::string gemm_key(const std::string& precision, const GemmKind& kind);
std::vector<std::string> gemm_keys(const std::string& precision);

// Samples for a kind, and the kind that they belong to. A profile may have none of the kind itself. Then it
// takes forward GEMMs of the same alignment, else aligned ones of this pass, else aligned forward GEMMs.
struct KnownGemms {
  GemmKind kind;
  const std::vector<GemmSample>* samples = nullptr;
};

// MissingCalibration when the profile has no GEMM of `precision`.
KnownGemms known_gemms(const Profile& profile, const std::string& precision, const GemmKind& kind);

}  // namespace rehearse
