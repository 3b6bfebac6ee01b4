// Which work do plans share that differ only in schedule, sharding and recompute?
#pragma once

#include <list>
#include <memory>
#include <tuple>
#include <vector>

#include "cost/kernel_times.h"
#include "memory/memory.h"
#include "run/iteration.h"

namespace rehearse {

struct PlanBounds {
  double least_s = 0;           // least_step_time()
  bool fits = true;             // equal to the report's
  bool leaves_headroom = true;  // by the experiment's headroom; equal to the report's
  double needed_bytes = 0;      // of the fullest GPU; equal to the report's where it fits
};

// The options that a Work and its prices depend on. These do not depend on when ops run, nor on how state is
// divided. Of the schedule they read whether the last stage is on the first rank (tied embeddings). From
// ZeRO-2 on, microbatches may reduce gradients and gather weights; prices count their copies and sums.
struct OpsKey : ParallelOptions,
                BatchOptions,
                RecomputeOptions,
                NumericsOptions,
                KernelOptions,
                StepOptions,
                ExpertOptions,
                LaunchOptions {
  Framework framework;
  bool is_v_shaped;
  ShardingOptions sharding;

  explicit OpsKey(const Plan& plan);
  bool operator==(const OpsKey&) const = default;
};

// The options that an order of compute ops depends on.
struct OrderKey : OrderOptions {
  int pp, vpp;
  bool pairs_passes;
  std::int64_t microbatches;

  explicit OrderKey(const Plan& plan);
  bool operator==(const OrderKey&) const = default;
};

// Work, prices and orders that plans share, each made once. Plans of one family follow each other in a
// search, so cached results are dropped with the family.
class Family {
 public:
  // Keeps references. `kernels` belongs to the experiment's cluster, its profile and the plans' precision.
  Family(const Experiment& experiment, KernelTimes& kernels) : experiment_(experiment), kernels_(kernels) {}

  PlanBounds bounds(const Plan& plan);

 private:
  struct Ops {
    OpsKey key;
    Work work;
    std::vector<StageTimes> times;
    std::vector<StageBytes> bytes;
  };
  struct Order {
    OrderKey key;
    Schedule schedule;
  };
  struct Activations {
    const Ops* ops;
    const Order* order;
    std::vector<RankMemory> ranks;
  };
  // Besides the ops, NCCL's groups and messages depend on how state is sharded, so that is part of the key.
  struct Outside {
    const Ops* ops;
    std::tuple<int, int, double> sharding;
    std::vector<OutsideAllocator> ranks;
  };

  const Ops& ops_of(const Plan& plan);
  const Order& order_of(const Plan& plan);
  const Activations& activations_of(const Ops& ops, const Plan& plan);
  const std::vector<OutsideAllocator>& outside_of(const Ops& ops, const Plan& plan);

  const Experiment& experiment_;
  KernelTimes& kernels_;
  std::list<Ops> ops_;
  std::list<Order> orders_;
  std::list<Activations> activations_;
  std::list<Outside> outside_;
};

// Whether `plan` belongs to the family of `other`: the same degrees and microbatch.
bool same_family(const Plan& plan, const Plan& other);

}  // namespace rehearse
