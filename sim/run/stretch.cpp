#include "run/stretch.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "plan/ranks.h"
#include "run/link_table.h"
#include "run/rings.h"

namespace rehearse {

namespace {

// Bytes that pass while every rank of a group sends one, wherever all groups send at once.
class Load {
 public:
  Load(const Cluster& cluster, const Conditions& conditions, int ranks)
      : cluster_(cluster),
        table_(cluster, conditions),
        nodes_(place_nodes(cluster, (std::int64_t{ranks} + cluster.node.gpus - 1) / cluster.node.gpus,
                           conditions)) {}

  bool has_shared_links() const { return table_.has_shared_links(); }

  void add(int from, int to, double bytes) {
    const auto [out, in] = table_.nics_between(place(from), place(to));
    nics_[nic_key(out)] += bytes;
    Between& between = between_[static_cast<std::uint64_t>(switch_key(out)) << 32 | switch_key(in)];
    between.bytes += bytes;
    between.out = out;
    between.in = in;
  }

  double stretch() const {
    double nic_s = 0, link_s = 0;
    const double nic_bandwidth =
        cluster_.node.nic.bandwidth * std::max(1, cluster_.node.nics / cluster_.node.gpus);
    for (const auto& [nic, bytes] : nics_) nic_s = std::max(nic_s, bytes / nic_bandwidth);
    std::map<std::uint64_t, double> seconds;
    for (const auto& [key, between] : between_)
      for (const FabricLink& link : table_.shared_route(between.out, between.in))
        link_s = std::max(link_s, seconds[link.id] += between.bytes / link.bandwidth);
    return nic_s > 0 ? std::max(1.0, link_s / nic_s) : 1;
  }

 private:
  // All messages between the same two lowest switches take the same way.
  struct Between {
    double bytes = 0;
    NicPlace out, in;
  };

  LinkTable::GpuPlace place(int rank) const {
    return {nodes_[static_cast<std::size_t>(rank / cluster_.node.gpus)], rank % cluster_.node.gpus};
  }

  std::uint64_t nic_key(NicPlace nic) const {
    return static_cast<std::uint64_t>(nic.node) * static_cast<std::uint64_t>(cluster_.node.nics) +
           static_cast<std::uint64_t>(nic.nic);
  }

  std::uint32_t switch_key(NicPlace nic) const {
    const Fabric& fabric = cluster_.fabric;
    if (!fabric.levels.empty()) nic.node = group_of(fabric.levels.front(), nic.node);
    if (!fabric.rails) nic.nic = 0;
    return static_cast<std::uint32_t>(nic_key(nic));
  }

  const Cluster& cluster_;
  LinkTable table_;
  std::vector<std::int64_t> nodes_;
  std::unordered_map<std::uint64_t, double> nics_;
  std::unordered_map<std::uint64_t, Between> between_;
};

void add_group(const std::vector<int>& group, int gpus_per_node, bool all_to_all, Load& load) {
  if (all_to_all) {
    for (const int from : group)
      for (const int to : group)
        if (from / gpus_per_node != to / gpus_per_node)
          load.add(from, to, 1 / static_cast<double>(group.size()));
    return;
  }
  const auto edges = ring_edges(group, gpus_per_node);
  std::map<int, int> leaving;  // by node: its members divide the ring's bytes
  for (const auto& [from, to] : edges) ++leaving[from / gpus_per_node];
  for (const auto& [from, to] : edges) load.add(from, to, 1.0 / leaving[from / gpus_per_node]);
}

double stretch_of(const RankGrid& grid, Axis axis, bool all_to_all, const Cluster& cluster,
                  const Conditions& conditions) {
  const std::vector<int> first = grid.group(0, axis);
  if (first.size() < 2) return 1;
  Load load(cluster, conditions, grid.size());
  if (!load.has_shared_links()) return 1;
  for (int rank = 0; rank < grid.size(); ++rank) {
    if (grid.coordinates(rank)[static_cast<std::size_t>(axis)] != 0) continue;
    add_group(grid.group(rank, axis), cluster.node.gpus, all_to_all, load);
  }
  return load.stretch();
}

}  // namespace

Stretch find_stretch(const Plan& plan, const Cluster& cluster, const Conditions& conditions) {
  const RankGrid grid(plan), experts = RankGrid::of_experts(plan);
  const bool exchanges = plan.cp_exchange == ContextExchange::all_to_all;
  const auto of = [&](const RankGrid& ranks, Axis axis, bool all_to_all) {
    return stretch_of(ranks, axis, all_to_all, cluster, conditions);
  };
  Stretch stretch;
  stretch.groups[static_cast<std::size_t>(Axis::tp)] = of(grid, Axis::tp, false);
  stretch.groups[static_cast<std::size_t>(Axis::cp)] = of(grid, Axis::cp, exchanges);
  stretch.experts[static_cast<std::size_t>(Axis::tp)] = of(experts, Axis::tp, false);
  stretch.experts[static_cast<std::size_t>(Axis::ep)] = of(experts, Axis::ep, true);
  return stretch;
}

}  // namespace rehearse
