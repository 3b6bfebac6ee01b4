// How long does one kernel take at its place in the work, and how long does a stage take in all?
#pragma once

#include <optional>
#include <vector>

#include "cost/inner_groups.h"
#include "cost/kernel_times.h"
#include "cost/parameter_streams.h"
#include "cost/profile.h"
#include "cost/stage_times.h"
#include "cost/transfers.h"
#include "plan/fp8.h"
#include "plan/work.h"

namespace rehearse {

// Adds up stages. Counts the seconds that it added, and how many of them were extrapolated.
class Pricing {
 public:
  Pricing(const Plan& plan, const Cluster& cluster, const Profile& profile, KernelTimes& times);

  StageTimes stage(const Work& work, int index, StageTransfers& transfers);

  Estimate time_of(const Block& block, const Kernel& kernel);

  const double on_slowest;  // times that a GEMM takes on the job's slowest GPU
  double priced_s = 0, extrapolated_s = 0, unmeasured_s = 0, launch_bound_s = 0;

 private:
  Estimate product(const Block& block, const Kernel& kernel, const Gemm& gemm);

  Estimate in_chunks(Gemm gemm, bool in_bf16);

  Estimate in_steps(Attention attention);

  static Estimate times(std::int64_t count, const Estimate& one);

  // Share of its rate that a kernel loses beside a call. Sends between GPUs of a node use copy engines, and
  // those between nodes hold two blocks: neither counts as blocks. The SM margin of a GEMM does not count
  // either.
  double lost(const Collective& collective, const Kernel& beside, double call_s);

  // Kernels that no op of the Work names.
  double parameter_streams_s(const Block& block, const std::vector<double>& bytes_of_each,
                             bool of_frozen = false);

  // Seconds of weight casts for the fp8 GEMMs of `kernels`.
  double casts_s(const Block& block, const std::vector<Kernel>& kernels,
                 const std::vector<double>& bytes_of_each);

  // Where the host waits for the output of a kernel, the GPU then waits for the host.
  void wait_for_results(const Work& work, const std::vector<Repeated>& parts, StageTimes& stage);

  double stalled_s(const Block& block, const std::vector<Kernel>& kernels);

  // The host launches one kernel after the other, so an op lasts at least as long as its launches. Where the
  // host waits for each kernel before it goes on, the launch time is added.
  void wait_for_launches(const Work& work, int index, StageTimes& stage);

  // Before each gather of a list, DeepSpeed waits until the GPU is idle (_allgather_param).
  void wait_for_lists(const Work& work, const std::vector<Repeated>& parts, StageTimes& stage);

  CommunicationTime call_time(const Collective& collective);

  // Bytes that a rank sends to other nodes in a call.
  double call_far_bytes(const Collective& collective);

  // Calls of a collective that run beside a chunk each, and seconds of one of those.
  struct Hidden {
    double calls = 0;
    double hidden_s = 0;
    double window_s = 0;  // until the call and its chunk have ended
    double total() const { return calls * hidden_s; }
  };

  // The part of a collective that kernels beside it hide, when these stand in `kernels`. Call by call it runs
  // beside one chunk, which gets the resources that the call leaves.
  Hidden hidden(const Block& block, const Kernel& kernel, const std::vector<Kernel>& kernels);

  // Use of the links by a collective.
  Transfers transfers_of(const Collective& collective, const Hidden& hidden);

  // Time that op B saves over I and W in sequence: collectives of `half` run beside kernels of `other`.
  TimeParts side_by_side(const Block& block, const std::vector<Kernel>& half,
                         const std::vector<Kernel>& other, double repeats, OpTransfers& transfers);

  // Adds the phases of a layer with experts, where passes are paired.
  void add_phases(const Block& block, double repeats, StageTimes& stage);
  ExpertPhases phases(const Block& block, const std::vector<Kernel>& kernels);

  TimeParts list(const Block& block, const std::vector<Kernel>& kernels, double repeats, bool recompute,
                 OpTransfers& transfers);

  const Plan& plan_;
  const Cluster& cluster_;
  const Profile& profile_;
  Precision precision_;
  bool graphs_passes_, launch_blocking_, prefetches_, pairs_passes_;
  int train_metrics_;
  GraphedParts graphed_;
  int list_ranks_;  // of a gather of lists; 0: there are none
  ParameterStreams streams_;
  WeightCasts casts_;
  KernelTimes& times_;
  InnerGroups groups_;
};

}  // namespace rehearse
