// What do plans that differ in schedule, sharding and recompute alone have in common?
#pragma once

#include <list>
#include <memory>
#include <tuple>
#include <vector>

#include "cost/kernel_times.h"
#include "result/memory/memory.h"
#include "run/iteration.h"

namespace rehearse {

struct PlanBounds {
  double least_s = 0;       // least_step_time()
  bool fits = true;         // exactly what the report says
  bool leaves_headroom = true;  // the experiment's; exactly what the report says
  double needed_bytes = 0;  // of the fullest GPU; exactly what the report says, too, where it fits
};

// Work, prices and orders that plans share, each made once. Plans of one family follow each other in a
// search: what is kept is dropped with the family.
class Family {
 public:
  // Keeps references. `kernels` belongs to the experiment's cluster, its profile and the plans' precision.
  Family(const Experiment& experiment, KernelTimes& kernels) : experiment_(experiment), kernels_(kernels) {}

  PlanBounds bounds(const Plan& plan);

 private:
  // By the fields of a plan that a Work and its prices hang on: all but the ones that ops_of() clears.
  struct Ops {
    Plan plan;
    Work work;
    std::vector<StageTimes> times;
    std::vector<StageBytes> bytes;
  };
  struct Order {
    Plan plan;
    Schedule schedule;
  };
  struct Activations {
    const Ops* ops;
    const Order* order;
    std::vector<RankMemory> ranks;
  };
  // By what NCCL's groups and messages hang on beside the ops: how state is sharded.
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
