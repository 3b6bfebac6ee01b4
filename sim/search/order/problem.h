// For which pipeline is an order of F, B, I and W sought: how much time and memory do its ops take?
//
// Times are whole picoseconds, so that sums are exact and every machine finds the same order.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace rehearse {

using Ticks = std::int64_t;
inline constexpr double kTicksPerSecond = 1e12;
inline constexpr Ticks kNever = std::numeric_limits<Ticks>::max() / 4;  // sums of two do not overflow

Ticks ticks_of(double seconds);
double seconds_of(Ticks ticks);

// One stage, for one microbatch. Bytes are those of memory/lifetimes.h: `saved` is live from the end of F to
// B or I, `kept` from the end of I to W. A peak is the maximum while the op runs, including tensors that the
// microbatch saved.
struct StageCosts {
  Ticks forward = 0, backward = 0, input = 0, weight = 0;  // of F, B, I, W
  Ticks to_next = 0,
        to_previous = 0;  // messages after F and after B or I; 0 where the neighbour is on the rank
  double saved = 0, kept = 0;
  double forward_peak = 0, backward_peak = 0, input_peak = 0, weight_peak = 0;
  Ticks reduction = 0;  // gradient sync once the last backward is through
  int buckets = 1;      // parts of that backward and of the reduction, which overlap
};

struct OrderProblem {
  int ranks = 1;
  int microbatches = 1;
  std::vector<int> rank_of;        // by stage
  std::vector<StageCosts> stages;  // by stage
  std::vector<double> capacity;    // by rank: bytes of activations
  // By rank: from the end of its backwards and reductions to the end of the step. Below 0 where a rank counts
  // from a later begin than others.
  std::vector<Ticks> step;

  int stage_count() const { return static_cast<int>(stages.size()); }
};

}  // namespace rehearse
