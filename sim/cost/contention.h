// How much of a GPU does a collective take from the kernels beside it?
#pragma once

#include <optional>

#include "cost/collectives.h"

namespace rehearse {

// What a matrix product was measured to lose beside such a collective: of that operation, within a node or
// across nodes, in the group of the nearest size. None where nothing of the kind was measured.
std::optional<double> measured_share(const Profile& profile, CollectiveOp op, const GroupShape& group);

// Share of the multiprocessors, 0 to kMostTaken, that the channels of a group's collectives hold while they
// run; kernels beside them run at 1 - share of their rate. NCCL launches one block for each channel, and no
// other kernel runs on its multiprocessor (S. Jeaugey in NVIDIA/nccl#689). 0 where the profile does not model
// NCCL or the cluster does not say how many multiprocessors its GPUs have. The memory bandwidth that a
// collective takes is not counted besides.
double share_taken(const Profile& profile, const Cluster& cluster, const GroupShape& group);

// The same of blocks that are known by number.
double share_taken(const Gpu& gpu, double blocks);

constexpr double kMostTaken = 0.9;

}  // namespace rehearse
