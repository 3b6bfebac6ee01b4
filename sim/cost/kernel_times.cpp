#include "cost/kernel_times.h"

#include <utility>

namespace rehearse {

namespace {

const std::string kBf16 = "bf16";

// Below KernelTimes::kKinds.
std::size_t index_of(const GemmKind& kind) {
  const std::size_t align = kind.align == 8 ? 0 : kind.align == 2 ? 1 : 2;
  return 6 * align + 2 * static_cast<std::size_t>(kind.pass) + (kind.grouped ? 1 : 0);
}

}  // namespace

KernelTimes::KernelTimes(const Profile& profile, const Gpu& gpu, std::string precision)
    : profile_(profile), gpu_(gpu), precision_(std::move(precision)) {}

Estimate KernelTimes::gemm(const Gemm& gemm, bool in_bf16) {
  const GemmKind kind = gemm_kind(gemm, in_bf16 ? kBf16 : precision_);
  const std::size_t index = index_of(kind) + (in_bf16 ? kKinds : 0);
  const Shape shape = {0,
                       static_cast<double>(gemm.m),
                       static_cast<double>(gemm.n),
                       static_cast<double>(gemm.k),
                       static_cast<double>(gemm.batch),
                       static_cast<double>(index),
                       gemm.result_bytes};
  if (const auto found = known_.find(shape); found != known_.end()) return found->second;
  std::optional<GemmCurve>& curve = curves_[index];
  if (!curve) curve = gemm_curve(profile_, gpu_, in_bf16 ? kBf16 : precision_, kind);
  return known_[shape] = gemm_time(*curve, gemm);
}

Estimate KernelTimes::attention(const Attention& a) {
  const Shape shape = {1,
                       static_cast<double>(a.batch),
                       static_cast<double>(a.heads),
                       static_cast<double>(a.kv_heads),
                       static_cast<double>(a.head_dim),
                       static_cast<double>(a.query),
                       static_cast<double>(a.keys),
                       a.causal ? 1.0 : 0.0,
                       a.backward ? 1.0 : 0.0,
                       static_cast<double>(a.v_head_dim),
                       static_cast<double>(a.window),
                       static_cast<double>(a.operands)};
  if (const auto found = known_.find(shape); found != known_.end()) return found->second;
  return known_[shape] = attention_time(profile_, gpu_, a, precision_);
}

Estimate KernelTimes::pointwise(Pointwise kind, double bytes) {
  const Shape shape = {2, static_cast<double>(kind), bytes};
  if (const auto found = known_.find(shape); found != known_.end()) return found->second;
  return known_[shape] = pointwise_time(profile_, gpu_, kind, bytes);
}

CommunicationTime KernelTimes::collective(const Cluster& cluster, CollectiveOp op, double bytes,
                                          const GroupShape& group) {
  if (!collectives_) collectives_.emplace(profile_, cluster);
  return collectives_->collective(op, bytes, group);
}

}  // namespace rehearse
