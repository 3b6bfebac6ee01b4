#include "cost/gemm_kind.h"

#include <fmt/core.h>

#include <array>
#include <numeric>

#include "base/error.h"

namespace rehearse {

namespace {

constexpr std::array kPasses = {GemmPass::forward, GemmPass::input_gradient, GemmPass::weight_gradient};
constexpr std::array kAligns = {8, 2, 1};

// The precision that the profile has: fp16 and bf16 stand in for each other.
std::string known_precision(const Profile& profile, const std::string& precision) {
  for (const std::string& name : {precision, std::string(precision == "bf16" ? "fp16" : "bf16")}) {
    if (profile.gemm.count(name) > 0 && (name == precision || precision == "fp16" || precision == "bf16"))
      return name;
  }
  std::vector<std::string> known;
  for (const auto& entry : profile.gemm) known.push_back(entry.first);
  throw MissingCalibration(
      fmt::format("profile {} has no {} GEMMs; it has {}", profile.name, precision, join(known)));
}

}  // namespace

GemmKind gemm_kind(const Gemm& gemm, const std::string& precision) {
  GemmKind kind{gemm.pass, gemm.of_experts && gemm.batch > 1};  // a GEMM of a single expert is a plain one
  if (precision != "fp16" && precision != "bf16") return kind;
  const std::int64_t row = std::gcd(gemm.pass == GemmPass::weight_gradient ? gemm.m : gemm.k, gemm.n);
  kind.align = row % 8 == 0 ? 8 : row % 2 == 0 ? 2 : 1;
  return kind;
}

std::string gemm_key(const std::string& precision, const GemmKind& kind) {
  std::string key = precision + (kind.grouped ? "/grouped" : "");
  if (kind.pass != GemmPass::forward)
    key += kind.pass == GemmPass::input_gradient ? "/input_gradient" : "/weight_gradient";
  return kind.align == 8 ? key : fmt::format("{}/align{}", key, kind.align);
}

std::vector<std::string> gemm_keys(const std::string& precision) {
  std::vector<std::string> keys;
  for (const int align : kAligns)
    for (const bool grouped : {false, true})
      for (const GemmPass pass : kPasses) keys.push_back(gemm_key(precision, {pass, grouped, align}));
  return keys;
}

KnownGemms known_gemms(const Profile& profile, const std::string& precision, const GemmKind& kind) {
  const std::string known = known_precision(profile, precision);
  const GemmKind aligned{kind.pass, kind.grouped}, forward_alike{GemmPass::forward, false, kind.align};
  for (const GemmKind& candidate : {kind, forward_alike, aligned}) {
    const auto found = profile.gemm.find(gemm_key(known, candidate));
    if (found != profile.gemm.end()) return {candidate, &found->second};
  }
  return {{}, &profile.gemm.at(known)};
}

}  // namespace rehearse
