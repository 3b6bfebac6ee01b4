// Which samples of a profile does a GEMM belong to?
#pragma once

#include <string>
#include <vector>

#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse {

// What tells GEMMs of one precision apart, beside their shapes.
struct GemmKind {
  GemmPass pass = GemmPass::forward;
  bool grouped = false;
  int align = 8;  // elements that a load of an operand brings: 8, 2 or 1
};

// cuBLAS loads 16 bytes at once only where every row starts at a multiple of them. For other 16-bit operands
// it takes CUTLASS kernels that load two elements (align2), or, of odd rows, one (align1, the kernels of
// Turing): JihaoXin/GAC, table "cuBLAS GEMM kernel tiers". Rows have k elements forward, and n; of weight
// gradients m and n. Operands of other sizes count as aligned.
GemmKind gemm_kind(const Gemm& gemm, const std::string& precision);

// How a profile calls the GEMMs of a kind: "fp16", "fp16/weight_gradient", "fp16/grouped/input_gradient",
// "fp16/align1".
std::string gemm_key(const std::string& precision, const GemmKind& kind);
std::vector<std::string> gemm_keys(const std::string& precision);

// A kind's samples, and which kind they are of: where a profile does not tell its own apart, forward GEMMs
// aligned alike, else its aligned ones, else aligned forward GEMMs.
struct KnownGemms {
  GemmKind kind;
  const std::vector<GemmSample>* samples = nullptr;
};

// MissingCalibration when the profile has no GEMM of `precision`.
KnownGemms known_gemms(const Profile& profile, const std::string& precision, const GemmKind& kind);

}  // namespace rehearse
