#include "cluster/fabric.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "cluster/cluster.h"

namespace rehearse {

namespace {

constexpr std::array kAxisNames = {"x", "y", "z"};

// Packs group or router, rail or direction, and level: enough for 2^40 nodes.
std::uint64_t link_id(std::size_t level, bool up, int lane, std::int64_t group) {
  return static_cast<std::uint64_t>(group) << 24 | static_cast<std::uint64_t>(lane) << 8 |
         static_cast<std::uint64_t>(level) << 1 | (up ? 1U : 0U);
}

bool has_rails(const Fabric& fabric, std::size_t level) {
  return fabric.rails && level == 0;
}

FabricLink tree_link(const Cluster& cluster, std::size_t level, NicPlace place, bool up) {
  const FabricLevel& of = cluster.fabric.levels[level];
  const std::int64_t group = group_of(of, place.node);
  const bool rails = has_rails(cluster.fabric, level);
  return {switch_name(cluster.fabric, level, place),
          link_id(level, up, rails ? place.nic : 0, group),
          static_cast<int>(level),
          up,
          uplink_bandwidth(cluster, level),
          of.oversubscription > 1};
}

std::vector<FabricLink> tree_route(const Cluster& cluster, NicPlace from, NicPlace to) {
  const Fabric& fabric = cluster.fabric;
  std::vector<FabricLink> up, down;
  for (std::size_t level = 0; level < fabric.levels.size(); ++level) {
    const bool same_rail = !has_rails(fabric, level) || from.nic == to.nic;
    if (same_rail && group_of(fabric.levels[level], from.node) == group_of(fabric.levels[level], to.node))
      break;
    up.push_back(tree_link(cluster, level, from, true));
    down.push_back(tree_link(cluster, level, to, false));
  }
  up.insert(up.end(), down.rbegin(), down.rend());
  return up;
}

std::string direct_name(const FabricLevel& level, std::int64_t from, std::int64_t to) {
  return fmt::format("{0}{1}-{0}{2}", level.name, from, to);
}

// The links of a group are distributed evenly over the other groups.
std::vector<FabricLink> direct_route(const Cluster& cluster, NicPlace from, NicPlace to) {
  const FabricLevel& level = cluster.fabric.levels.front();
  const std::int64_t a = group_of(level, from.node), b = group_of(level, to.node);
  if (a == b) return {};
  const std::int64_t groups = group_of(level, std::int64_t{cluster.max_nodes} - 1) + 1;
  return {{direct_name(level, a, b), link_id(1, true, 0, a * groups + b), 0, true,
           uplink_bandwidth(cluster, 0) / static_cast<double>(groups - 1), true}};
}

std::string torus_name(std::int64_t router, std::size_t axis, bool forward) {
  return fmt::format("router{}.{}{}", router, kAxisNames.at(axis), forward ? '+' : '-');
}

std::vector<FabricLink> torus_route(const Fabric& fabric, std::int64_t from, std::int64_t to) {
  std::vector<FabricLink> route;
  std::int64_t stride = 1;
  for (std::size_t axis = 0; axis < fabric.extents.size(); ++axis) {
    const std::int64_t extent = fabric.extents[axis];
    const std::int64_t ahead = ((to / stride - from / stride) % extent + extent) % extent;
    const bool forward = 2 * ahead <= extent;
    for (std::int64_t hop = 0; hop < (forward ? ahead : extent - ahead); ++hop) {
      const std::int64_t at = from / stride % extent;
      route.push_back({torus_name(from, axis, forward),
                       link_id(0, true, static_cast<int>(2 * axis) + (forward ? 0 : 1), from), 0, true,
                       fabric.link_bandwidth, true});
      const std::int64_t next = (at + (forward ? 1 : extent - 1)) % extent;
      from += (next - at) * stride;
    }
    stride *= extent;
  }
  return route;
}

}  // namespace

std::string to_string(FabricKind kind) {
  static constexpr std::array names = {"switch", "fat-tree", "dragonfly", "torus"};
  return names.at(static_cast<std::size_t>(kind));
}

std::int64_t group_of(const FabricLevel& level, std::int64_t node) {
  return node / level.nodes;
}

std::string switch_name(const Fabric& fabric, std::size_t level, NicPlace below) {
  const FabricLevel& of = fabric.levels[level];
  const std::string name = fmt::format("{}{}", of.name, group_of(of, below.node));
  return has_rails(fabric, level) ? fmt::format("{}.rail{}", name, below.nic) : name;
}

double uplink_bandwidth(const Cluster& cluster, std::size_t level) {
  const Fabric& fabric = cluster.fabric;
  double rate = cluster.node.nic.bandwidth * fabric.levels[level].nodes;
  if (!has_rails(fabric, level)) rate *= cluster.node.nics;
  for (std::size_t below = 0; below <= level; ++below) rate /= fabric.levels[below].oversubscription;
  return rate;
}

std::vector<std::string> fabric_link_names(const Cluster& cluster, std::int64_t nodes) {
  const Fabric& fabric = cluster.fabric;
  std::vector<std::string> names;
  if (fabric.kind == FabricKind::torus) {
    for (std::int64_t router = 0; router < nodes; ++router)
      for (std::size_t axis = 0; axis < fabric.extents.size(); ++axis)
        for (const bool forward : {true, false}) names.push_back(torus_name(router, axis, forward));
    return names;
  }
  const bool direct = fabric.kind == FabricKind::dragonfly && fabric.minimal_routing;
  for (std::size_t level = 0; level < fabric.levels.size(); ++level) {
    const FabricLevel& of = fabric.levels[level];
    const std::int64_t groups = group_of(of, nodes - 1) + 1;
    for (std::int64_t group = 0; group < groups; ++group) {
      for (std::int64_t other = 0; direct && other < groups; ++other)
        if (other != group) names.push_back(direct_name(of, group, other));
      for (int nic = 0; !direct && nic < (has_rails(fabric, level) ? cluster.node.nics : 1); ++nic)
        names.push_back(switch_name(fabric, level, {group * of.nodes, nic}));
    }
  }
  return names;
}

bool has_shared_links(const Fabric& fabric) {
  if (fabric.kind == FabricKind::torus) return true;
  if (fabric.kind == FabricKind::dragonfly && fabric.minimal_routing) return true;
  return std::any_of(fabric.levels.begin(), fabric.levels.end(),
                     [](const FabricLevel& level) { return level.oversubscription > 1; });
}

bool has_own_rates(const Fabric& fabric) {
  return fabric.kind == FabricKind::torus;
}

std::vector<FabricLink> fabric_route(const Cluster& cluster, NicPlace from, NicPlace to) {
  if (from.node == to.node && from.nic == to.nic) return {};
  switch (cluster.fabric.kind) {
    case FabricKind::single_switch:
      return {};
    case FabricKind::torus:
      return torus_route(cluster.fabric, from.node, to.node);
    case FabricKind::dragonfly:
      if (cluster.fabric.minimal_routing) return direct_route(cluster, from, to);
      [[fallthrough]];
    case FabricKind::fat_tree:
      return tree_route(cluster, from, to);
  }
  return {};
}

}  // namespace rehearse
