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
// NCCL or the cluster does not say how many multiprocessors its GPUs have.
double share_taken(const Profile& profile, const Cluster& cluster, const GroupShape& group);

// The same of blocks that are known by number.
double share_taken(const Gpu& gpu, double blocks);

// A collective under way: bytes as nccl-tests' size, and how long it takes alone.
struct UnderWay {
  CollectiveOp op = CollectiveOp::all_reduce;
  double bytes = 0;
  double seconds = 0;
};

// Share of the memory bandwidth that it takes on each GPU of a group of `members`: what comes over the links
// is written, what leaves is read. That is the least, twice the links' bandwidth; NCCL's own buffers may make
// it three times (S. Jeaugey in NVIDIA/nccl#1428).
double memory_taken(const Gpu& gpu, int members, const UnderWay& collective);

// What a kernel loses beside it that has neither the multiprocessors of its blocks, a share `blocks` of all,
// nor the memory bandwidth that it takes.
double share_lost(const Gpu& gpu, int members, const UnderWay& collective, double blocks);

// The same, or what was measured.
double share_lost(const Profile& profile, const Gpu& gpu, const GroupShape& group, const UnderWay& collective,
                  double blocks);

constexpr double kMostTaken = 0.9;

}  // namespace rehearse
