// When is the compute stream of a rank idle, and which messages or reductions delay it?
#pragma once

#include <cstdint>
#include <vector>

#include "result/timeline.h"

namespace rehearse {

// An op of another stream that must end before the compute stream can continue.
struct Blocker {
  std::int32_t op = 0;
  double ready =
      0;  // first in its stream and its own waits over; until its span begins it waits for its peer
};

struct Gap {
  double begin = 0, end = 0;
  std::int32_t next = -1;         // the op of the compute stream that ends it; -1: the iteration ends
  std::vector<Blocker> blockers;  // those that had not ended when the gap began
};

// Every gap of the compute stream in [0, step_time_s], in order. Blockers are the ops that the next op waits
// for, directly or through other ops, by an event or by their place in the stream. `one_queue`: ops run in
// issue order.
std::vector<Gap> compute_gaps(const TimelineRank& rank, const RankOps& ops, double step_time_s,
                              bool one_queue = false);

// The gap from begin to end, divided into parts in which `op` transfers data and parts in which it has not
// begun to. Where several ops transfer at once, the part belongs to the one that ends last. op -1: no op was
// waited for.
struct GapPart {
  double begin = 0, end = 0;
  std::int32_t op = -1;
  bool moves = false;
};
std::vector<GapPart> parts_of(const Gap& gap, const TimelineRank& rank);

// The part of a gap during which its blockers transfer data; the rest is bubble.
struct Exposure {
  double pp = 0;        // SEND, RECV
  double dp = 0;        // REDUCE_GRAD
  double tied = 0;      // REDUCE_TIED
  double gather = 0;    // UNSHARD
  double replicas = 0;  // REDUCE_REPLICAS
  double offload = 0;   // copies to and from the host
  double total() const { return pp + dp + tied + gather + replicas + offload; }
  double& of(OpKind kind);  // of a message, collective or copy
  Exposure& operator+=(const Exposure& other);
};
Exposure exposed(const Gap& gap, const TimelineRank& rank, const RankOps& ops);

}  // namespace rehearse
