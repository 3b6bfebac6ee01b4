// How many GPUs does a training run need at least?
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "memory/footprint.h"
#include "memory/memory.h"
#include "memory/verdict.h"
#include "model/model.h"
#include "plan/plan.h"

namespace rehearse {

// What a plan may use.
struct SizingLimits {
  double gpu_memory_bytes = 0;
  double workspace_bytes = 0;
  int gpus_per_node = 1;       // tp stays within a node
  std::int64_t most_gpus = 0;  // 0: as many as asked for
  // What lies beside the allocator on each pipeline rank of a plan; none: nothing.
  std::function<std::vector<OutsideAllocator>(const Plan&, const Work&)> outside = {};
  Headroom headroom = {.share = 0};  // that is to stay free
};

struct FewestGpus {
  Plan plan;
  Footprint fullest;
};

// The plan with as many microbatches as are needed to reach its peak.
Plan shortened(Plan plan);

// The fewest GPUs on which a legal plan like `plan` fits: every tp that divides a node and every pp are tried
// with dp 1 and all else as it is (without pipeline ranks: one chunk, 1F1B; as many ranks of experts as one
// replica holds). Of equal numbers of GPUs the
// plan that needs least memory. Nothing when none fits.
std::optional<FewestGpus> fewest_gpus(const Model& model, const Plan& plan, const SizingLimits& limits);

// The rule of thumb: parameters x 18 bytes x 1.25 / memory of a GPU (Megatron-LM's 18 bytes, a quarter more
// for all else).
double rule_of_thumb_gpus(double parameters, double gpu_memory_bytes);

// Memory as GPUs are sold by: whole GiB, rounded up from what the CUDA runtime reports; in bytes of 1e9 a GB.
double nominal_memory_bytes(double gpu_memory_bytes);

}  // namespace rehearse
