#include "run/links.h"

#include <algorithm>
#include <unordered_map>

#include "cost/links.h"

namespace rehearse {

namespace {

constexpr auto kDp = static_cast<std::size_t>(Axis::dp);
constexpr auto kPp = static_cast<std::size_t>(Axis::pp);

std::int64_t nodes_of(const RankGrid& grid, const Cluster& cluster) {
  return (std::int64_t{grid.size()} + cluster.node.gpus - 1) / cluster.node.gpus;
}

}  // namespace

Links::Links(const Tasks& tasks, const Plan& plan, const Cluster& cluster, const Conditions& conditions)
    : tasks_(tasks),
      cluster_(cluster),
      grid_(plan),
      groups_(plan),
      nodes_(place_nodes(cluster, nodes_of(grid_, cluster), conditions)),
      table_(cluster, conditions),
      nic_bandwidth_(cluster.node.nic.bandwidth * nics_of_a_gpu(cluster.node)),
      members_(tasks.instances.size()),
      instance_of_(static_cast<std::size_t>(grid_.size()), -1) {
  const bool one_replica = static_cast<int>(tasks.instances.size()) == plan.pp;
  std::map<std::pair<int, int>, int>
      folded;  // {replica, pipeline rank}: the instance that stands for its peers
  for (int i = 0; i < static_cast<int>(tasks.instances.size()); ++i) {
    const int rank = tasks.instances[static_cast<std::size_t>(i)].rank;
    const Coordinates at = grid_.coordinates(rank);
    folded.try_emplace({one_replica ? 0 : at[kDp], at[kPp]}, i);
    instance_of_[static_cast<std::size_t>(rank)] = i;
  }
  const bool every_rank = static_cast<int>(tasks.instances.size()) == grid_.size();
  for (int rank = 0; rank < grid_.size(); ++rank) {
    const Coordinates at = grid_.coordinates(rank);
    int& instance = instance_of_[static_cast<std::size_t>(rank)];
    const auto found = folded.find({one_replica ? 0 : at[kDp], at[kPp]});
    if (!every_rank) instance = found == folded.end() ? -1 : found->second;
    if (instance >= 0) members_[static_cast<std::size_t>(instance)].push_back(rank);
  }
  add_ports();
}

LinkTable::GpuPlace Links::place(int rank) const {
  return {nodes_[static_cast<std::size_t>(rank / cluster_.node.gpus)], rank % cluster_.node.gpus};
}

bool Links::stands_alone(int instance) const {
  return members_[static_cast<std::size_t>(instance)].size() == 1;
}

Endpoints Links::add_port(double bandwidth) {
  return {table_.end_of({table_.add_link(bandwidth)}), table_.end_of({table_.add_link(bandwidth)})};
}

// By pipeline rank: the largest number of its ranks that send through one NIC.
std::map<int, int> Links::shares_of_nics() const {
  std::map<int, int> most;
  std::map<std::pair<int, int>, int> users;  // by pipeline rank and NIC of one node
  for (int rank = 0; rank < grid_.size(); ++rank) {
    if (rank % cluster_.node.gpus == 0) users.clear();
    const int pipeline_rank = grid_.coordinates(rank)[kPp];
    int& of_rank = most[pipeline_rank];
    of_rank = std::max(of_rank, ++users[{pipeline_rank, table_.nic_of(place(rank)).nic}]);
  }
  return most;
}

void Links::add_ports() {
  std::map<std::tuple<int, std::int64_t, int>, Endpoints> nics;  // pipeline ranks of a replica share them
  std::map<int, int> shares;
  for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
    const Instance& instance = tasks_.instances[static_cast<std::size_t>(i)];
    if (stands_alone(i)) {
      const LinkTable::GpuPlace at = place(instance.rank);
      gpu_.push_back(table_.gpu_port(at.node, at.gpu));
      nic_.push_back(cluster_.node.nics == 0 ? gpu_.back() : table_.nic_port(table_.nic_of(at)));
      continue;
    }
    double slowest_link = gpu_bandwidth();
    for (const int rank : members_[static_cast<std::size_t>(i)])
      slowest_link = std::min(slowest_link, table_.gpu_bandwidth(place(rank)));
    gpu_.push_back(add_port(slowest_link));
    if (cluster_.node.nics == 0) {
      nic_.push_back(gpu_.back());
      continue;
    }
    if (shares.empty()) shares = shares_of_nics();
    double slowest = nic_bandwidth_;
    for (const int rank : members_[static_cast<std::size_t>(i)])
      slowest = std::min(slowest, table_.nic_bandwidth(table_.nic_of(place(rank))));
    const NicPlace nic = table_.nic_of(place(instance.rank));
    const auto [port, is_new] = nics.try_emplace({grid_.coordinates(instance.rank)[kDp], nic.node, nic.nic});
    if (is_new) port->second = add_port(slowest / shares.at(instance.pipeline_rank));
    nic_.push_back(port->second);
  }
}

Links::Pairs Links::peers(int a, int b) const {
  const std::vector<int>& from = members_[static_cast<std::size_t>(a)];
  const std::vector<int>& to = members_[static_cast<std::size_t>(b)];
  Pairs pairs;
  for (std::size_t i = 0; i < from.size(); ++i) pairs.emplace_back(from[i], to[i]);
  return pairs;
}

bool Links::crosses_nodes(int a, int b) const {
  const Pairs pairs = peers(a, b);
  return std::any_of(pairs.begin(), pairs.end(), [this](const auto& pair) {
    return pair.first / cluster_.node.gpus != pair.second / cluster_.node.gpus;
  });
}

std::vector<FlowShare> Links::message(int a, int b) {
  const Pairs pairs = peers(a, b);
  if (stands_alone(a) && !(has_own_rates(cluster_.fabric) && crosses_nodes(a, b)))
    return {{table_.message(place(pairs.front().first), place(pairs.front().second)), 1}};
  std::vector<FlowShare> crossings;
  if (!crosses_nodes(a, b)) {
    // The narrowest path of all pairs.
    std::vector<LinkId> narrowest;
    const auto width = [this](const std::vector<LinkId>& links) {
      double least = gpu_bandwidth();
      for (const LinkId link : links)
        least = std::min(least, table_.capacity()[static_cast<std::size_t>(link)]);
      return least;
    };
    for (const auto& [from, to] : pairs) {
      std::vector<LinkId> wires = table_.wires(place(from), place(to));
      if (narrowest.empty() || width(wires) < width(narrowest)) narrowest = std::move(wires);
    }
    std::vector<LinkId> out = table_.ends()[static_cast<std::size_t>(gpu(a).out)];
    out.insert(out.end(), narrowest.begin(), narrowest.end());
    return {{{table_.end_of(out), gpu(b).in}, 1}};
  }
  crossings.push_back({{nic_[static_cast<std::size_t>(a)].out, nic_[static_cast<std::size_t>(b)].in}, 1});
  append_shared(pairs, 1, crossings);
  return crossings;
}

// Finds, for each level of the fabric, the link that is fullest for its capacity, along the path of the first
// pair that crosses it. Appends a flow with the bytes of all pairs on that link. Each rank divides its bytes
// among its messages.
void Links::append_shared(const Pairs& pairs, double messages_a_rank, std::vector<FlowShare>& crossings) {
  if (!table_.has_shared_links()) return;
  const std::vector<Bundle> bundles = bundled(pairs);
  std::unordered_map<std::uint64_t, double> users;
  for (const Bundle& bundle : bundles)
    for (const FabricLink& link : bundle.route) users[link.id] += bundle.messages;
  struct Fullest {
    double seconds = 0;  // of one byte from each user
    const Bundle* way = nullptr;
    double users = 0;
  };
  std::map<int, Fullest> by_level;
  for (const Bundle& bundle : bundles) {
    for (const FabricLink& link : bundle.route) {
      Fullest& fullest = by_level[link.level];
      const double seconds = users[link.id] / link.bandwidth;
      if (seconds > fullest.seconds) fullest = {seconds, &bundle, users[link.id]};
    }
  }
  for (const auto& [level, fullest] : by_level) {
    std::vector<LinkId> out, in;
    for (const FabricLink& link : fullest.way->route) {
      if (link.level == level) (link.up ? out : in).push_back(table_.fabric_link(link));
    }
    if (in.empty()) in = {table_.unbounded_link()};
    crossings.push_back({{table_.end_of(out), table_.end_of(in)},
                         fullest.users / messages_a_rank,
                         has_own_rates(cluster_.fabric)});
  }
}

// Bundles in the order of the first pair of each.
std::vector<Links::Bundle> Links::bundled(const Pairs& pairs) const {
  std::vector<Bundle> bundles;
  std::unordered_map<std::uint64_t, std::size_t> known;  // by the lowest switches of both sides
  for (const auto& [from, to] : pairs) {
    if (from / cluster_.node.gpus == to / cluster_.node.gpus) continue;
    const auto [out, in] = table_.nics_between(place(from), place(to));
    const std::uint64_t way = std::uint64_t{lowest_switch(out)} << 32 | lowest_switch(in);
    const auto [found, is_new] = known.try_emplace(way, bundles.size());
    if (is_new) bundles.push_back({0, table_.shared_route(out, in)});
    bundles[found->second].messages += 1;
  }
  return bundles;
}

std::uint32_t Links::lowest_switch(NicPlace nic) const {
  const Fabric& fabric = cluster_.fabric;
  if (!fabric.levels.empty()) nic.node = group_of(fabric.levels.front(), nic.node);
  if (!fabric.rails) nic.nic = 0;
  return static_cast<std::uint32_t>(nic.node * cluster_.node.nics + nic.nic);
}

const std::vector<FlowShare>& Links::ring(CommGroup group, int instance) {
  return crossings(group, instance, ring_edges);
}

const std::vector<FlowShare>& Links::all_to_all(CommGroup group, int instance) {
  return crossings(group, instance, far_pairs);
}

const std::vector<FlowShare>& Links::crossings(CommGroup group, int instance, MessagesOf messages_of) {
  const auto [found, is_new] = rings_.try_emplace(group);
  if (is_new) found->second = crossings(group, messages_of);
  return found->second[static_cast<std::size_t>(instance)];
}

std::vector<std::vector<FlowShare>> Links::crossings(CommGroup of, MessagesOf messages_of) {
  std::vector<std::vector<FlowShare>> crossings(members_.size());
  if (!table_.has_shared_links()) {
    for (std::size_t i = 0; i < members_.size(); ++i) crossings[i] = {{nic_[i], 1}};
    return crossings;
  }
  std::vector<Pairs> pairs(members_.size());
  std::vector<double> shares(members_.size(), 0);
  std::vector<bool> seen(instance_of_.size());
  for (int rank = 0; rank < grid_.size(); ++rank) {
    if (seen[static_cast<std::size_t>(rank)]) continue;
    const std::vector<int> group = groups_.ranks(of, rank);
    if (seen[static_cast<std::size_t>(group.front())]) continue;  // a group that `rank` itself is not in
    int last = -1;
    for (const int member : group) seen[static_cast<std::size_t>(member)] = true;
    const FarMessages messages = messages_of(group, cluster_.node.gpus);
    for (const auto& pair : messages.pairs) {
      const int instance = instance_of_[static_cast<std::size_t>(pair.first)];
      if (instance < 0) continue;
      pairs[static_cast<std::size_t>(instance)].push_back(pair);
      if (pair.first != last) shares[static_cast<std::size_t>(instance)] += 1;
      last = pair.first;
    }
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const bool is_one_message = stands_alone(static_cast<int>(i)) && pairs[i].size() == 1 && shares[i] == 1;
    if (is_one_message && !has_own_rates(cluster_.fabric)) {
      const auto& [from, to] = pairs[i].front();
      crossings[i] = {{table_.across(table_.nic_of(place(from)), table_.nic_of(place(to))), 1}};
    } else {
      crossings[i] = {{nic_[i], 1}};
      if (!pairs[i].empty())
        append_shared(pairs[i], static_cast<double>(pairs[i].size()) / shares[i], crossings[i]);
    }
  }
  return crossings;
}

}  // namespace rehearse
