// How do the nodes of a cluster reach each other: which switch links lie between two NICs, and how much
// bandwidth do they have?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse {

enum class FabricKind : std::uint8_t { single_switch, fat_tree, dragonfly, torus };
std::string to_string(FabricKind kind);  // "switch", "fat-tree", "dragonfly", "torus"

// Fat tree: switches that serve `nodes` nodes together. Parallel switches of one place in the tree (spines
// that every leaf reaches) count as one, as adaptive or hashed routing uses them. Dragonfly: one level, the
// group.
struct FabricLevel {
  std::string name;             // "leaf", "pod", "group"
  int nodes = 0;                // below one switch
  double oversubscription = 1;  // bandwidth from below over bandwidth of its uplinks
};

struct Fabric {
  FabricKind kind = FabricKind::single_switch;
  std::string note;                 // as published
  std::vector<FabricLevel> levels;  // lowest first; a core above the last one joins all
  bool rails = false;               // lowest level: NIC i of each node has a switch of its own
  bool minimal_routing = false;  // dragonfly: only the direct link of two groups, else all links of a group
  std::vector<int> extents;      // torus: nodes along each dimension, the first varies fastest
  double link_bandwidth = 0;     // torus: of each link, bytes/s each way
};

// A NIC of the cluster.
struct NicPlace {
  std::int64_t node = 0;
  int nic = 0;
};

// One direction of a link between switches.
struct FabricLink {
  std::string name;      // "leaf3", "leaf3.rail2", "group1-group4", "router5.x+"
  std::uint64_t id = 0;  // of the direction
  int level = 0;
  bool up = false;       // towards the core; torus, direct links of a dragonfly: always
  double bandwidth = 0;  // bytes/s
  bool shared = false;   // its level is oversubscribed: input can exceed its bandwidth
};

struct Cluster;

// The links between the switches of `from` and `to`, in order: up to the lowest switch above both, then down.
// Torus: dimension by dimension, in the shorter direction.
std::vector<FabricLink> fabric_route(const Cluster& cluster, NicPlace from, NicPlace to);

// The names of all links of the fabric above the first `nodes` nodes.
std::vector<std::string> fabric_link_names(const Cluster& cluster, std::int64_t nodes);

// Whether the input of any fabric link can exceed its bandwidth.
bool has_shared_links(const Fabric& fabric);

// Whether the links' rate is given as a figure, instead of derived from the NICs below.
bool has_own_rates(const Fabric& fabric);

// The switch of the level above `node`.
std::int64_t group_of(const FabricLevel& level, std::int64_t node);

// The switch of a fat tree's level above a NIC: "leaf3", with rails "leaf3.rail2".
std::string switch_name(const Fabric& fabric, std::size_t level, NicPlace below);

// Total bandwidth of the uplinks of one switch of level `level`, bytes/s each way.
double uplink_bandwidth(const Cluster& cluster, std::size_t level);

}  // namespace rehearse
