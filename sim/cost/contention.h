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

// Seconds of the whole memory bandwidth that a collective's bytes take on each GPU of a group of `members`,
// however long they are under way: what comes over the links is written, what leaves is read. That is the
// least; NCCL's own buffers may make it half as much again (S. Jeaugey in NVIDIA/nccl#1428).
double memory_taken_s(const Gpu& gpu, int members, CollectiveOp op, double bytes);

// What a collective takes from the kernels beside it.
struct Taken {
  double blocks = 0;    // share of the multiprocessors, for as long as it is under way; or what was measured
  double memory_s = 0;  // memory_taken_s()

  Taken& operator+=(const Taken& next);  // one after the other
};

// By a collective whose blocks are a share `blocks` of all multiprocessors, or as measured.
Taken taken_by(const Profile& profile, const Gpu& gpu, const GroupShape& group, CollectiveOp op, double bytes,
               double blocks);

// Share of its rate, up to kMostTaken, that a kernel loses beside a collective that is under way for
// `seconds`.
double share_lost(const Taken& taken, double seconds);

constexpr double kMostTaken = 0.9;

}  // namespace rehearse
