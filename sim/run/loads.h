// Which resources does each task need: how long does it take by itself, and which links do its bytes cross?
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "cost/price.h"
#include "cost/profile.h"
#include "plan/messages.h"
#include "plan/plan.h"
#include "run/conditions.h"
#include "run/contended.h"
#include "run/links.h"
#include "run/stage_nodes.h"
#include "schedule/schedule.h"
#include "schedule/tasks.h"

namespace rehearse {

// By task:
// - fixed_s: seconds that no other task can stretch. A compute op's whole time except `inside`; a message's
//   latency.
// - transfer_s: seconds on the links when no other task uses them. The task's own flows share them. 0 without
//   flows.
// - taken: the share of a GPU that a collective takes from concurrent kernels during alone_s() (share_lost).
//   Their fixed_s does not include this delay yet (delays_beside_collectives).
// - waits_s: the part of fixed_s in which the GPU waits for the host. Kernels and messages may last this much
//   longer before the op does. Empty: none.
// - slowed_s: the part of fixed_s by which kernels last longer than priced, on a slow GPU or beside
//   collectives. Empty: none.
struct Loads {
  std::vector<double> fixed_s;
  std::vector<double> transfer_s;
  std::vector<double> taken;
  std::vector<std::uint32_t> first_flow;  // one more entry than tasks
  std::vector<Flow> flows;
  ContendedOps inside = {};
  std::vector<double> capacity;            // by link, bytes/s
  std::vector<std::vector<LinkId>> ends;   // by end of a flow
  std::map<std::uint64_t, LinkId> fabric;  // links that the rest of the cluster may cross too
  double extrapolated_s = 0;               // seconds whose size lies outside the profile
  std::vector<double> slowed_s = {};
  std::vector<double> waits_s = {};

  std::span<const Flow> flows_of(TaskId task) const {
    return {flows.data() + first_flow[task], first_flow[task + 1] - first_flow[task]};
  }
  double wait_s(TaskId task) const { return waits_s.empty() ? 0 : waits_s[task]; }
  double alone_s(TaskId task) const;
  void slow(TaskId task, double seconds);  // the kernels of the task last longer
};

// Gives both jobs the links of both. A link of the fabric that both cross becomes one. Each job has its own
// nodes.
void join_links(Loads& own, Loads& other);

// The fabric between nodes is `cluster`'s. Where `nodes` is not empty, each pipeline rank has the GPUs of its
// nodes.
Loads make_loads(const Schedule& schedule, const Tasks& tasks, const Plan& plan, const Cluster& cluster,
                 const Profile& profile, const Prices& prices, const MessageSizes& sizes,
                 const Conditions& conditions = {}, const StageNodes& nodes = {});

}  // namespace rehearse
