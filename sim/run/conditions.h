// How does the cluster depart from the ideal: where do the job's nodes lie, and what is slow or down?
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

// A part that works at `speed` times its rated pace: of a rank its kernels, of a GPU's links inside its node,
// a NIC or a link of the fabric its bandwidth. 0: down.
struct Slow {
  enum class Part : std::uint8_t { rank, gpu_link, nic, link };
  Part part = Part::rank;
  int rank = 0;           // part rank
  GpuPlace gpu;           // part gpu_link; nodes are numbered in the cluster, not in the job
  NicPlace nic;           // part nic
  std::string link = {};  // part link: its name as `topo --route` prints it
  double speed = 1;
};

// Spread of durations from one iteration to the next: log-normal with mean 1, by coefficient of variation.
// One draw an op (of all ranks in lock step together) or message.
struct Jitter {
  double compute = 0;
  double messages = 0;
};

struct Conditions {
  Placement placement = Placement::compact;
  std::int64_t nodes_before = 0, nodes_after = 0;  // of those that are placed: another job's
  bool pxn = true;  // a message to another rail leaves through the NIC of that rail (NCCL_P2P_PXN_LEVEL)
  std::vector<Slow> slow;
  Jitter jitter;
  std::uint64_t seed = 0;
  int iterations = 1;

  bool has_jitter() const { return jitter.compute > 0 || jitter.messages > 0; }
};

// "rank=17:0.8,nvlink=3.1:0.5,nic=3.1:0.5,link=leaf0:0.5"; InputError with the form when it is no such list.
std::vector<Slow> parse_slow(const std::string& text);

// InputError when the slow ranks, NICs or links do not exist or a speed is not in [0, 1]; ranks cannot be
// down.
void require_conditions(const Conditions& conditions, const Plan& plan, const Cluster& cluster);

// The nodes of the cluster that a job of `nodes` nodes gets, in the order of its ranks.
std::vector<std::int64_t> place_nodes(const Cluster& cluster, std::int64_t nodes,
                                      const Conditions& conditions);

// How fast the ranks at `rank`'s place in the lock step compute: the slowest of those that meet in its
// tensor-, context- and expert-parallel groups.
double speed_of(const Plan& plan, const Conditions& conditions, int rank);

// Data-parallel replicas to walk one by one so that each differing one is walked and one stands for the rest:
// {0} when none differs. Sharding groups and positions in them are kept apart.
std::vector<int> replicas_to_walk(const Plan& plan, const Cluster& cluster, const Conditions& conditions);

}  // namespace rehearse
