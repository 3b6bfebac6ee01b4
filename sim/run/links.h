// Which links do the simulated instances use, and how many of the ranks that an instance stands for share
// each?
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "plan/comm_group.h"
#include "run/link_table.h"
#include "run/rings.h"
#include "schedule/tasks.h"

namespace rehearse {

// A flow that carries `times` the bytes of one rank. A link with a rate of its own (of_bytes) carries the
// message's bytes to other nodes. The port of a NIC, or a link whose rate is a part of a port's, carries the
// message's seconds times that rate: the whole cost of the message then counts as bytes.
struct FlowShare {
  Endpoints ends;
  double times = 1;
  bool of_bytes = false;

  // `bytes`: sent by one rank. `counted`: its seconds on the port times the port's rate.
  double carried(double bytes, double counted) const { return times * (of_bytes ? bytes : counted); }
};

// A folded instance stands for peers that move in lock step. Two rules let folded and unfolded runs agree:
// - Several peers send through one NIC: the instance has that part of its capacity.
// - Several meet on a link of the fabric: an extra flow carries their bytes on the fullest such link of each
//   level.
class Links {
 public:
  Links(const Tasks& tasks, const Plan& plan, const Cluster& cluster, const Conditions& conditions = {});

  const Endpoints& gpu(int instance) const { return gpu_[static_cast<std::size_t>(instance)]; }
  double gpu_bandwidth() const { return cluster_.node.gpu_link.bandwidth; }
  double nic_bandwidth() const { return nic_bandwidth_; }  // all NICs of a GPU, in order and unshared

  // Whether any rank of instance a has its peer of instance b in another node. Peers of a folded pair are the
  // ranks with equal coordinates. The slowest of them sets the pace of all.
  bool crosses_nodes(int a, int b) const;
  std::vector<FlowShare> message(int a, int b);

  // An instance's flows between nodes in a ring over each group (run/rings.h). Without links of the fabric,
  // the cost model sets the pace of all members. Links of the fabric carry the bytes that cross them.
  const std::vector<FlowShare>& ring(CommGroup group, int instance);

  // The same where each member sends equal parts to all others.
  const std::vector<FlowShare>& all_to_all(CommGroup group, int instance);

  // -1 where another replica's instance stands for `rank`.
  int instance_of(int rank) const { return instance_of_[static_cast<std::size_t>(rank)]; }

  const LinkTable& table() const { return table_; }

 private:
  using Pairs = std::vector<std::pair<int, int>>;  // ranks that send to ranks
  using MessagesOf = FarMessages (*)(const std::vector<int>& group, int gpus_per_node);

  LinkTable::GpuPlace place(int rank) const;
  bool stands_alone(int instance) const;
  Pairs peers(int a, int b) const;
  const std::vector<FlowShare>& crossings(CommGroup group, int instance, MessagesOf messages_of);
  std::vector<std::vector<FlowShare>> crossings(CommGroup group, MessagesOf messages_of);
  // Messages between the same two lowest switches: all take one route.
  struct Bundle {
    double messages = 0;
    std::vector<FabricLink> route;
  };
  std::vector<Bundle> bundled(const Pairs& pairs) const;
  std::uint32_t lowest_switch(NicPlace nic) const;
  void append_shared(const Pairs& pairs, double messages_a_rank, std::vector<FlowShare>& crossings);
  void add_ports();
  std::map<int, int> shares_of_nics() const;
  Endpoints add_port(double bandwidth);

  const Tasks& tasks_;
  const Cluster& cluster_;
  RankGrid grid_;
  CommGroups groups_;
  std::vector<std::int64_t> nodes_;  // of the cluster, by node of the job
  LinkTable table_;
  double nic_bandwidth_;
  std::vector<std::vector<int>> members_;  // by instance: the ranks it stands for
  std::vector<int> instance_of_;           // by rank; -1: stood for by another replica
  std::vector<Endpoints> gpu_, nic_;       // by instance
  std::map<CommGroup, std::vector<std::vector<FlowShare>>> rings_;
};

}  // namespace rehearse
