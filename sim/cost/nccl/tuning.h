// Which algorithm and protocol does NCCL choose for a collective, and which time does it expect?
#pragma once

#include <optional>

#include "cost/nccl/graph.h"
#include "plan/work.h"

namespace rehearse::nccl {

// `rate` is the rate of the wires. NCCL chooses by `believed_rate`. They differ only for NVLSTree.
struct Choice {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  double latency_s = 0;
  double rate = 0;  // bytes of the buffer a second
  double believed_rate = 0;
  double seconds(double bytes) const { return latency_s + bytes / rate; }
};

// The least time over all algorithms and protocols, or over those of `forced` where it can run (NCCL_ALGO).
// time = latency + bytes / rate; NVIDIA/nccl src/graph/tuning.cc, ncclTopoTuneModel and ncclTopoGetAlgoTime.
// bytes: the full buffer (nccl-tests' size).
//
// NCCL does not cost point-to-point operations: they take the constants of one ring step. all_to_all is bound
// by the GPU's link or its share of the NICs.
Choice choose(const Constants& constants, const Graph& graph, CollectiveOp op, double bytes,
              std::optional<Algorithm> forced = {});

// The same algorithm and protocol as `choice`, on another graph where they can run too.
Choice believe(const Constants& constants, const Graph& graph, CollectiveOp op, double bytes,
               const Choice& choice);

}  // namespace rehearse::nccl
