// How long does this kernel or collective take? Each shape is computed once, however often it is asked for.
#pragma once

#include <array>
#include <map>
#include <optional>

#include "cluster/cluster.h"
#include "cost/collectives.h"
#include "cost/gemm_curve.h"

namespace rehearse {

// The kernels of one GPU, profile and precision, and the collectives of one cluster, the only one asked for.
// Keeps references: `profile` and `gpu` must outlive it.
class KernelTimes {
 public:
  KernelTimes(const Profile& profile, const Gpu& gpu, std::string precision);

  // In the precision of the plan, or in bf16 like those GEMMs of an fp8 plan that are not quantized.
  Estimate gemm(const Gemm& gemm, bool in_bf16 = false);
  Estimate attention(const Attention& attention);
  Estimate pointwise(Pointwise kind, double bytes);
  Estimate scan(const Scan& scan, const ScanTensors& tensors) const {
    return scan_time(profile_, gpu_, scan, tensors);
  }
  CommunicationTime collective(const Cluster& cluster, CollectiveOp op, double bytes,
                               const GroupShape& group);

  std::size_t distinct() const { return known_.size(); }

 private:
  using Shape = std::array<double, 12>;  // kind of kernel, then its sizes

  const Profile& profile_;
  const Gpu& gpu_;
  std::string precision_;
  static constexpr std::size_t kKinds = 18;  // of GEMMs: 3 passes, alone or grouped, 3 alignments
  std::array<std::optional<GemmCurve>, 2 * kKinds> curves_;  // in bf16 last; each made for its first GEMM
  std::map<Shape, Estimate> known_;
  std::optional<CollectiveTimes> collectives_;
};

}  // namespace rehearse
