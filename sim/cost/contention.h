// How much of a GPU does a collective take from the kernels beside it?
#pragma once

#include <optional>

#include "cost/collectives.h"

namespace rehearse {

// The measured share of its rate that a GEMM loses beside a collective of this operation, within a node or
// across nodes, in the group of the nearest size. None where no such pair was measured.
std::optional<double> measured_share(const Profile& profile, CollectiveOp op, const GroupShape& group);

// Share of the multiprocessors, 0 to kMaxTaken, that the channels of a group's collectives hold while they
// run. Concurrent kernels run at 1 - share of their rate. NCCL launches one block for each channel, and no
// other kernel runs on its multiprocessor (S. Jeaugey in NVIDIA/nccl#689). 0 where the profile has no model
// of NCCL, or the cluster does not state its GPUs' multiprocessors.
double share_taken(const Profile& profile, const Cluster& cluster, const GroupShape& group);

// The same for a known number of blocks.
double share_taken(const Gpu& gpu, double blocks);

// Seconds of the whole memory bandwidth that a collective takes on each GPU of a group of `members`. Bytes
// that arrive are written, and bytes that leave are read, at whatever speed the links have. This is a lower
// bound: NCCL's own buffers may add half as much (S. Jeaugey in NVIDIA/nccl#1428).
double memory_taken_s(const Gpu& gpu, int members, CollectiveOp op, double bytes);

// Resources that a collective takes from concurrent kernels.
struct Taken {
  double blocks = 0;    // share of the multiprocessors while it runs, or measured_share()
  double memory_s = 0;  // memory_taken_s()

  Taken& operator+=(const Taken& next);  // one after the other
};

// Taken by a collective whose blocks hold a share `blocks` of all multiprocessors, unless measured_share()
// has one.
Taken taken_by(const Profile& profile, const Gpu& gpu, const GroupShape& group, CollectiveOp op, double bytes,
               double blocks);

// Share of its rate, up to kMaxTaken, that a kernel loses beside a collective that runs for `seconds`.
double share_lost(const Taken& taken, double seconds);

constexpr double kMaxTaken = 0.9;

}  // namespace rehearse
