// How long will a run take, and how much memory will it need, before it starts?
#pragma once

#include <string>

#include "run/iteration.h"

namespace rehearse {

// What a run may take unless --large is given.
inline constexpr double kMaxRunBytes = 4e9, kMaxRunSeconds = 600;

// Of one op of a simulated rank, with its task, edges, flow and span. Simulations of 2,000 and of 10,000
// microbatches over 8 stages differ by 270 bytes and 4.5 us an op, on a busy Xeon at 2.1 GHz; rounded up.
// tests/bench/size_bench.cpp measures it anew. A run begins at kBaseBytes: program, profile, curves.
inline constexpr double kBytesOfOp = 290, kSecondsOfOp = 6e-6, kBaseBytes = 60e6;

// Added for each op by the HTML page and by the traces of PyTorch's profiler and Perfetto, which hold their
// events in memory. Bytes are measured in the same way; seconds are assumed, not measured.
inline constexpr OutputCost kPageCost{1500, 5e-5}, kKinetoCost{4300, 1e-4}, kPerfettoCost{7500, 1.5e-4};

struct RunSize {
  double ops = 0;  // of all simulated ranks and steps
  double seconds = 0, bytes = 0;
  std::string terms;  // "1000000 microbatches x 44 ops of 8 simulated ranks"

  bool is_large() const { return bytes > kMaxRunBytes || seconds > kMaxRunSeconds; }
};

// Of a run that simulates every microbatch. Ops are counted in two short schedules and continued.
RunSize size_of(const Experiment& experiment);

// Of a run as run_iteration() does it, where a long step repeats itself. A search or a sweep multiplies it.
RunSize expected_size(const Experiment& experiment);

// "about 13 GB and 5 min"
std::string in_words(const RunSize& size);

// InputError with the estimate, its terms and the nearest batch that is not large, unless experiment.large.
// `why`: the reason why every microbatch is simulated, "" where there is none to name.
void require_affordable(const Experiment& experiment, const std::string& why = "");

}  // namespace rehearse
