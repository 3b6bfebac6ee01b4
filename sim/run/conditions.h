// How does the cluster depart from the ideal: which nodes does the job get, and which parts are slow or down?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "plan/plan.h"

namespace rehearse {

// Which nodes of the cluster a job gets. Its ranks fill one node after the other.
enum class Placement : std::uint8_t {
  compact,    // neighbours: 0, 1, 2, ...
  scattered,  // dealt to the lowest switches in turn: neighbouring nodes of the job share none
  random      // any, drawn with the seed
};
std::string to_string(Placement placement);

// A GPU of the cluster, in its node.
struct GpuPlace {
  std::int64_t node = 0;
  int gpu = 0;
};

// A part that works at `speed` times its rated speed. This applies to the kernels of a rank, and to the
// bandwidth of a GPU's links inside its node, of a NIC or of a fabric link. 0: down.
struct Slow {
  enum class Part : std::uint8_t { rank, gpu_link, nic, link };
  Part part = Part::rank;
  int rank = 0;           // part rank
  GpuPlace gpu;           // part gpu_link; nodes are numbered in the cluster, not in the job
  NicPlace nic;           // part nic
  std::string link = {};  // part link: its name as `topo --route` prints it
  double speed = 1;
};

// Spread of durations between iterations: log-normal with mean 1, by coefficient of variation. One draw for
// each message, and for each op of all ranks in lock step together.
struct Jitter {
  double compute = 0;
  double messages = 0;
};

struct Conditions {
  Placement placement = Placement::compact;
  std::int64_t nodes_before = 0, nodes_after = 0;  // another job's, among the placed nodes
  bool pxn = true;  // a message to another rail leaves through the NIC of that rail (NCCL_P2P_PXN_LEVEL)
  std::vector<Slow> slow;
  Jitter jitter;
  std::uint64_t seed = 0;
  int iterations = 1;

  bool has_jitter() const { return jitter.compute > 0 || jitter.messages > 0; }
};

// "rank=17:0.8,nvlink=3.1:0.5,nic=3.1:0.5,link=leaf0:0.5". InputError with the form when the text is no such
// list.
std::vector<Slow> parse_slow(const std::string& text);

// InputError when slow ranks, NICs or links do not exist, or a speed is not in [0, 1]. Ranks cannot be down.
void require_conditions(const Conditions& conditions, const Plan& plan, const Cluster& cluster);

// The nodes of the cluster that a job of `nodes` nodes gets, in the order of its ranks.
std::vector<std::int64_t> place_nodes(const Cluster& cluster, std::int64_t nodes,
                                      const Conditions& conditions);

// The compute speed of the ranks in lock step with `rank`: the slowest rank of its tensor-, context- and
// expert-parallel groups.
double speed_of(const Plan& plan, const Conditions& conditions, int rank);

// Data-parallel replicas to simulate: each one that differs, and one that stands for the rest. {0} when none
// differs. Sharding groups and positions in them are distinguished.
std::vector<int> replicas_to_walk(const Plan& plan, const Cluster& cluster, const Conditions& conditions);

}  // namespace rehearse
