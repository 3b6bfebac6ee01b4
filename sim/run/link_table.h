// Which links of the cluster does a message cross, and at which rate?
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cluster/cluster.h"
#include "run/conditions.h"

namespace rehearse {

using LinkId = std::int32_t;  // one direction of a link
using EndId = std::int32_t;   // the links on one side of a flow's path

// A flow crosses the links of both ends.
struct Endpoints {
  EndId out = 0;
  EndId in = 0;
};

// Grows with the messages asked for: only links that a message crosses exist. Non-blocking parts of the
// fabric have no link at all. So flows that cannot disturb each other stay uncoupled.
class LinkTable {
 public:
  LinkTable(const Cluster& cluster, const Conditions& conditions);

  LinkId add_link(double capacity);  // bytes/s
  EndId end_of(const std::vector<LinkId>& links);

  // Ports of a GPU to its node and of a NIC to the fabric, one end each way.
  Endpoints gpu_port(std::int64_t node, int gpu);
  Endpoints nic_port(NicPlace nic);

  using GpuPlace = rehearse::GpuPlace;

  // From GPU to GPU. InputError when a link that it needs is down.
  Endpoints message(GpuPlace from, GpuPlace to);

  // The NICs that such a message across nodes takes.
  std::pair<NicPlace, NicPlace> nics_between(GpuPlace from, GpuPlace to) const;

  // From NIC to NIC, with their ports.
  Endpoints across(NicPlace from, NicPlace to);

  // The links between the NICs that can be shared or are slow.
  std::vector<FabricLink> shared_route(NicPlace from, NicPlace to) const;

  // The links inside a node where its wiring is known.
  std::vector<LinkId> wires(GpuPlace from, GpuPlace to);

  // One direction of a fabric link.
  LinkId fabric_link(const FabricLink& link);

  LinkId unbounded_link();  // for a flow that only its other end bounds

  // The NIC that a GPU sends through: another one of its node when its own is down.
  NicPlace nic_of(GpuPlace place) const;
  double gpu_bandwidth(GpuPlace place) const;  // to its node, bytes/s
  // A GPU's NICs together, bytes/s.
  double nic_bandwidth(NicPlace nic) const;

  bool has_shared_links() const { return shared_; }
  // Fabric links that messages cross, by their id in the fabric.
  const std::map<std::uint64_t, LinkId>& fabric_links() const { return fabric_links_; }
  const std::vector<double>& capacity() const { return capacity_; }       // by link
  const std::vector<std::vector<LinkId>>& ends() const { return ends_; }  // by end

 private:
  Endpoints inside(GpuPlace from, GpuPlace to);
  double speed_of_link(const std::string& name) const;

  const Cluster& cluster_;
  bool pxn_;
  bool shared_;
  std::map<std::string, double> link_speed_;
  std::map<std::pair<std::int64_t, int>, double> gpu_speed_, nic_speed_;  // by node and place in it
  std::map<std::pair<int, int>, std::vector<Wire>> wires_;                // by two GPUs of a node
  std::vector<double> capacity_;
  std::vector<std::vector<LinkId>> ends_;
  std::map<std::vector<LinkId>, EndId> end_of_;
  std::map<std::pair<std::int64_t, int>, Endpoints> gpu_ports_, nic_ports_;
  std::map<std::uint64_t, LinkId> fabric_links_;
  LinkId unbounded_ = -1;
  std::map<std::tuple<std::int64_t, std::size_t, std::size_t>, LinkId> wire_links_;
};

}  // namespace rehearse
