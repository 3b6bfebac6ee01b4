// How long does this kernel or collective take, asked again and again? Each shape is computed once.
#pragma once

#include <array>
#include <map>
#include <optional>

#include "cluster/cluster.h"
#include "cost/collectives.h"
#include "cost/gemm_curve.h"

namespace rehearse {

// The kernels of one GPU, profile and precision, and the collectives of the one cluster that is asked for.
// Keeps references: `profile` and `gpu` must outlive it.
class KernelTimes {
 public:
  KernelTimes(const Profile& profile, const Gpu& gpu, std::string precision);

  // In the precision of the plan, or in bf16, as an fp8 plan's products that are not quantised.
  Estimate gemm(const Gemm& gemm, bool in_bf16 = false);
  Estimate attention(const Attention& attention);
  Estimate pointwise(Pointwise kind, double bytes);
  CommunicationTime collective(const Cluster& cluster, CollectiveOp op, double bytes,
                               const GroupShape& group);

  std::size_t distinct() const { return known_.size(); }

 private:
  using Shape = std::array<double, 11>;  // kind of kernel, then its sizes

  const Profile& profile_;
  const Gpu& gpu_;
  std::string precision_;
  std::array<std::optional<GemmCurve>, 12>
      curves_;  // by pass, alone, grouped, in bf16; made for the first GEMM
  std::map<Shape, Estimate> known_;
  std::map<Shape, CommunicationTime> collectives_;
};

}  // namespace rehearse
