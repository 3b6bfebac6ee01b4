// How long does a message or a collective take when it has its links to itself?
#pragma once

#include <array>
#include <map>
#include <string>

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse {

namespace nccl {
class TimeCurve;
}

// `latency_s` passes before the first byte; `transfer_s` is the time on the links, which others may share.
struct CommunicationTime {
  double latency_s = 0;
  double transfer_s = 0;
  bool extrapolated = false;
  double total() const { return latency_s + transfer_s; }

  CommunicationTime& operator+=(const CommunicationTime& next);  // one after the other
};

// Placement of a group: n members on `nodes` nodes. `per_nic` members of a node share one NIC. `fewest_nics`
// is the number of NICs that serve them in the node with fewest (0: the same number in each node).
struct GroupShape {
  int members = 1;
  int nodes = 1;
  double per_nic = 1;
  bool in_island = false;  // all joined by bridges (NcclFacts::island_gpus)
  double fewest_nics = 0;

  double local() const { return static_cast<double>(members) / nodes; }  // members of a node, the mean
  // NICs of each node that a ring or tree goes through. NCCL uses the smallest number of channels that any
  // rank found, on all ranks (NVIDIA/nccl src/init.cc, initTransportsRank: the least nChannels of
  // allGather3).
  double ring_nics() const { return fewest_nics > 0 ? fewest_nics : local() / per_nic; }
};

// As profiles name them: "all_reduce", ..., "send_receive".
const std::map<std::string, CollectiveOp>& message_ops();
std::string message_name(CollectiveOp op);

// The shape of the group of `ranks`, with ranks placed on GPUs in order.
GroupShape group_shape(const Cluster& cluster, const std::vector<int>& ranks);

// Bytes that one rank of a ring sends; it receives the same number (Patarasu and Yuan 2009; nccl-tests
// doc/PERFORMANCE.md). bytes is the full buffer (nccl-tests' size).
double sent_bytes(CollectiveOp op, double bytes, int members);

// The part of sent_bytes() that a member sends to other nodes. A ring's bytes leave each node once, through
// as many members as have NICs in it. A message between two members leaves as a whole.
double far_bytes(CollectiveOp op, double bytes, const GroupShape& group);

// Times of messages on one cluster: by NCCL's cost model and its corrections, if the profile has them
// (cost/nccl/time_curve.h), otherwise by a ring over the profile's link costs. bytes is the full buffer
// (nccl-tests' size). A group of one takes no time. Curves are made once. Keeps a reference
// to the profile.
class CollectiveTimes {
 public:
  CollectiveTimes(const Profile& profile, const Cluster& cluster);
  ~CollectiveTimes();
  CollectiveTimes(CollectiveTimes&&) noexcept;

  CommunicationTime collective(CollectiveOp op, double bytes, const GroupShape& group);

  // A broadcast between broadcasts from other ranks: it ends when it has gone round the ring. nccl-tests
  // repeat broadcasts from one rank. Those follow each other on the ring, which hides this time.
  CommunicationTime lone_broadcast(double bytes, const GroupShape& group);

  CommunicationTime send(double bytes, bool crosses_nodes);

 private:
  using Key = std::array<double, 6>;  // operation and group

  const Profile& profile_;
  Cluster cluster_;
  std::map<Key, nccl::TimeCurve> curves_;
};

// CollectiveTimes for a single message.
CommunicationTime collective_time(const Profile& profile, const Cluster& cluster, CollectiveOp op,
                                  double bytes, const GroupShape& group);
CommunicationTime lone_broadcast_time(const Profile& profile, const Cluster& cluster, double bytes,
                                      const GroupShape& group);
CommunicationTime send_time(const Profile& profile, const Cluster& cluster, double bytes, bool crosses_nodes);

}  // namespace rehearse
