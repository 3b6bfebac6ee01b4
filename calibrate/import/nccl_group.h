// On which group of GPUs did a run of nccl-tests run, and are they those of its cluster?
#pragma once

#include <string>
#include <vector>

#include "calibrate/import/nccl_log.h"

namespace rehearse::nccl {

// Group size given by the user; 0: not given.
struct GivenSize {
  int nodes = 0;
  int gpus_per_node = 0;
};

struct GroupSize {
  int nodes = 0;
  int gpus_per_node = 0;
  std::string note;  // conclusions, as opposed to values read
};

// Determined from these sources:
// - the lines "Rank N";
// - busbw / algbw, which is 2 (n-1)/n of an all-reduce and (n-1)/n of gathers, scatters and all-to-all over n
//   ranks (nccl-tests, doc/PERFORMANCE.md);
// - the user's input.
// InputError where they contradict each other, with both values; where several runs went at once; where the
// run used one GPU; and where the size stays unknown, with the flag to give.
GroupSize size_of_group(const LogRun& run, const std::string& op, const GivenSize& given,
                        const Cluster& cluster);

// A sentence when the log names other GPUs than the cluster has; empty when they agree or one names no model.
std::string other_gpu(const LogRun& run, const Cluster& cluster);

}  // namespace rehearse::nccl
