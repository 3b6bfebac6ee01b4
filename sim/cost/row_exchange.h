// How long do DeepEP and HybridEP take for token dispatch and combine, and which part of a GPU do they use
// meanwhile?
#pragma once

#include "cost/collectives.h"
#include "plan/plan.h"
#include "plan/work.h"

namespace rehearse {

// Rates that these libraries reach, from calibrate/data/experts/exchanges.json.
inline constexpr double kExchangeLink = 0.68;     // of a GPU's link, HybridEP on one node, the median
inline constexpr double kExchangeNic = 0.87;      // of a NIC's line rate, on four nodes and more, the median
inline constexpr double kDeepEpSmBytes = 17.1e9;  // bytes/s of one multiprocessor, DeepEP with up to 24
inline constexpr double kLocalCopy = 0.7;         // of the memory's bandwidth, HybridEP's copies on a GPU
inline constexpr double kSpreadLook = 0.17e-9, kCollectLook = 0.09e-9;  // s for each row and local expert

// Multiprocessors that dispatch or combine over a group holds: Plan::dispatcher_sms, else the library's
// default (20: deep_ep/buffer.py; 24 on one node, 8 on several: csrc/hybrid_ep/config.cuh).
int exchange_sms(const Plan& plan, const GroupShape& group);

// Time of a dispatch or combine in which Collective::bytes visit each rank. A row goes once to each node that
// needs it, through the NIC of the GPU that has it, to the GPU of the same place. From there it goes once to
// each rank of the node. Both run at once, so the slower one sets the pace (DeepEP, docs/legacy.md; HybridEP,
// docs/Hybrid-EP_Implementation.md). Bytes to the own node and rank use neither.
CommunicationTime exchange_time(const Plan& plan, const Cluster& cluster, const Collective& exchange,
                                const GroupShape& group);

// The part of it that a rank sends to other nodes, in bytes.
double exchange_far_bytes(const Plan& plan, const Collective& exchange, const GroupShape& group);

// Seconds of HybridEP's kernels between its buffer and the experts of a rank. `kind`: Pointwise::spread_rows
// or collect_rows. They move `bytes`, and for each row look through all local experts, `looks` in all
// (csrc/hybrid_ep/extension/permute.cu).
double local_move_time(const Gpu& gpu, Pointwise kind, double bytes, double looks);

// Bytes of the library's own buffers on one GPU, beside PyTorch's allocator, for `rows` of `hidden` elements
// on each rank. DeepEP keeps pieces of its channels (csrc/config.hpp; deep_ep/buffer.py). HybridEP keeps room
// for all rows of all ranks, and for the rows of each node that wait for its NIC (csrc/hybrid_ep/buffer).
double exchange_buffers(const Plan& plan, const GroupShape& group, std::int64_t experts, double rows,
                        double hidden);

}  // namespace rehearse
