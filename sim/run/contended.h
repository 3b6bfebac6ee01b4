// Which ops do more than take a known time, because the collectives inside them meet other flows?
//
// An op whose collectives are alone on their links takes its priced time. Collectives may also share a link
// with other tasks, or cross a link that is narrower than priced. Such an op is equal rounds of kernels and
// transfers in turn, and only the engine knows how long these last.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cost/stage_times.h"
#include "cost/transfers.h"
#include "plan/plan.h"
#include "run/links.h"
#include "schedule/schedule.h"
#include "schedule/tasks.h"

namespace rehearse {

// Bytes that cross the links of both ends, counted at the links' capacity.
struct Flow {
  Endpoints ends;
  std::uint64_t bytes = 0;
};

// Bytes that a group's collectives put on links: for each priced second, or for each byte that a rank sends
// to other nodes (FlowShare::of_bytes).
struct FlowRate {
  Endpoints ends;
  double bytes_per_s = 0;
  double times_bytes = 0;
  Flow flow(double seconds, double bytes) const;  // whole bytes, at least one
};
using FlowRates = std::array<std::vector<FlowRate>, kInnerGroups>;

// A round: the kernels, then for each group its exposed transfers, then its window.
struct ContendedOp {
  int rounds = 1;
  std::int32_t leader = 0;  // the instance whose rates apply
  OpTransfers round;
  double priced_s = 0;  // transfers and windows of all rounds
  double alone_s = 0;   // the same on the links as they are, when no other task uses them
};

struct ContendedOps {
  std::vector<FlowRates> paces;  // by instance that leads ops
  std::vector<ContendedOp> ops;
  std::vector<std::int32_t> op_of;  // by task; -1: takes a known time. Empty: all do.

  const ContendedOp* of(std::uint32_t task) const {
    return op_of.empty() || op_of[task] < 0 ? nullptr : &ops[static_cast<std::size_t>(op_of[task])];
  }
  std::span<const FlowRate> rates_of(const ContendedOp& op, std::size_t group) const {
    return paces[static_cast<std::size_t>(op.leader)][group];
  }
};

// `transfers` and `times` by stage; `flows` of all tasks, over the ends of `links`.
ContendedOps find_contended(const Schedule& schedule, const Tasks& tasks, const Plan& plan,
                            const Cluster& cluster, const std::vector<StageTransfers>& transfers,
                            const OpTimes& times, const std::vector<Flow>& flows, Links& links);

}  // namespace rehearse
