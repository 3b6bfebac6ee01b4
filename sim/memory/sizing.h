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

// Resources that a plan may use.
struct SizingLimits {
  double gpu_memory_bytes = 0;
  double workspace_bytes = 0;
  int gpus_per_node = 1;       // tp stays within a node
  std::int64_t most_gpus = 0;  // 0: as many as asked for
  // Memory beside the allocator, on each pipeline rank of a plan; none: zero.
  std::function<std::vector<OutsideAllocator>(const Plan&, const Work&)> outside = {};
  Headroom headroom = {.share = 0};  // that is to stay free
};

struct FewestGpus {
  Plan plan;
  Footprint fullest;
};

// The plan with only as many microbatches as it needs to reach its peak. GPipe's plan keeps all: it holds
// them all.
Plan shortened(Plan plan);

// rank_memory() of the plan's order of ops, without the times at which it is reached and without live
// microbatches. Its cost does not grow with the microbatches.
std::vector<RankMemory> order_memory(const Plan& plan, const Work& work, double workspace_bytes);

// The fewest GPUs on which a legal plan like `plan` fits. Every tp that divides a node and every pp are
// tried, with dp 1 and all other settings unchanged. Without pipeline ranks there is one chunk and 1F1B.
// Expert-parallel ranks are as many as one replica holds. Among plans with equal GPUs, the one that needs
// least memory. None if no plan fits.
std::optional<FewestGpus> fewest_gpus(const Model& model, const Plan& plan, const SizingLimits& limits);

// The rule of thumb: parameters x 18 bytes x 1.25 / memory of a GPU (Megatron-LM's 18 bytes, and a quarter
// more for everything else).
double rule_of_thumb_gpus(double parameters, double gpu_memory_bytes);

// The memory size that a GPU is sold by: whole GiB, rounded up from the CUDA runtime's figure, as bytes of
// 1e9 a GB.
double nominal_memory_bytes(double gpu_memory_bytes);

}  // namespace rehearse
