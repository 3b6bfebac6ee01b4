#include "run/links.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rehearse {

namespace {

bool folded(const Tasks& tasks, const RankGrid& grid) {
  return static_cast<int>(tasks.instances.size()) != grid.size();
}

// The ranks that instance `i` stands for.
std::vector<int> members(const Tasks& tasks, const RankGrid& grid, int i) {
  const Instance& instance = tasks.instances[static_cast<std::size_t>(i)];
  if (!folded(tasks, grid)) return {instance.rank};
  std::vector<int> ranks;
  for (int rank = 0; rank < grid.size(); ++rank) {
    if (grid.coordinates(rank)[static_cast<std::size_t>(Axis::pp)] == instance.pipeline_rank)
      ranks.push_back(rank);
  }
  return ranks;
}

// {node, NIC of the node} that a GPU sends through.
std::pair<int, int> nic_of(const Cluster& cluster, int gpu) {
  return {gpu / cluster.node.gpus, cluster.nic_of(gpu % cluster.node.gpus)};
}

double most_on_one_nic(const Cluster& cluster, const std::vector<int>& gpus) {
  std::map<std::pair<int, int>, int> users;
  int most = 1;
  for (const int gpu : gpus) most = std::max(most, ++users[nic_of(cluster, gpu)]);
  return most;
}

}  // namespace

Links make_links(const Tasks& tasks, const Plan& plan, const Cluster& cluster) {
  const RankGrid grid(plan);
  Links links;
  const auto add_port = [&](double capacity) {
    links.capacity.insert(links.capacity.end(), 2, capacity);
    const auto out = static_cast<LinkId>(links.capacity.size() - 2);
    return PortLinks{out, out + 1};
  };
  std::map<std::pair<int, int>, PortLinks> nics;
  for (int i = 0; i < static_cast<int>(tasks.instances.size()); ++i) {
    links.gpu.push_back(add_port(cluster.node.gpu_link.bandwidth));
    if (cluster.node.nics == 0) {
      links.nic.push_back(links.gpu.back());
      links.nic_share.push_back(1);
      continue;
    }
    const double share = folded(tasks, grid) ? most_on_one_nic(cluster, members(tasks, grid, i)) : 1;
    const auto [nic, is_new] =
        nics.try_emplace(nic_of(cluster, tasks.instances[static_cast<std::size_t>(i)].rank));
    if (is_new) nic->second = add_port(cluster.node.nic.bandwidth / share);
    links.nic.push_back(nic->second);
    links.nic_share.push_back(share);
  }
  return links;
}

bool crosses_nodes(const Tasks& tasks, const RankGrid& grid, const Cluster& cluster, int a, int b) {
  const std::vector<int> from = members(tasks, grid, a);
  const std::vector<int> to = members(tasks, grid, b);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] / cluster.node.gpus != to[i] / cluster.node.gpus) return true;
  }
  return false;
}

}  // namespace rehearse
