#include "run/conditions.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <random>
#include <set>

#include "base/bounds.h"
#include "base/error.h"
#include "plan/comm_group.h"
#include "plan/ranks.h"

namespace rehearse {

namespace {

constexpr auto kReplica = static_cast<std::size_t>(Axis::dp);
constexpr Bounds kSpeed{Dimension::one, 1e-6, 1, true};  // of the ideal one; 0: down

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// "rank=17:0.8"
bool read_slow(std::string_view word, Slow& slow) {
  const std::size_t equals = word.find('='), colon = word.rfind(':');
  if (equals == std::string_view::npos || colon == std::string_view::npos || colon < equals) return false;
  const std::string_view part = word.substr(0, equals), which = word.substr(equals + 1, colon - equals - 1);
  if (which.empty() || !read_number(word.substr(colon + 1), slow.speed)) return false;
  if (part == "rank") {
    slow.part = Slow::Part::rank;
    return read_number(which, slow.rank);
  }
  if (part == "link") {
    slow.part = Slow::Part::link;
    slow.link = which;
    return true;
  }
  const std::size_t dot = which.find('.');
  if (dot == std::string_view::npos || (part != "nic" && part != "nvlink")) return false;
  slow.part = part == "nic" ? Slow::Part::nic : Slow::Part::gpu_link;
  const std::string_view node = which.substr(0, dot), place = which.substr(dot + 1);
  if (slow.part == Slow::Part::nic)
    return read_number(node, slow.nic.node) && read_number(place, slow.nic.nic);
  return read_number(node, slow.gpu.node) && read_number(place, slow.gpu.gpu);
}

[[noreturn]] void fail(const std::string& rule, const std::string& values, const std::string& nearest = "") {
  throw InputError({"", "/slow", rule, values, nearest});
}

void require_slow(const Slow& slow, const Plan& plan, const Cluster& cluster) {
  if (!kSpeed.hold(slow.speed))
    fail(fmt::format("a speed must be {} of the full one; 0 is down", to_string(kSpeed)),
         fmt::format("found {}", slow.speed), "0.5");
  if (slow.part == Slow::Part::rank) {
    if (slow.rank < 0 || slow.rank >= plan.gpus())
      fail(fmt::format("ranks are numbered from 0 to {}", plan.gpus() - 1), fmt::format("rank {}", slow.rank),
           std::to_string(std::clamp(slow.rank, 0, plan.gpus() - 1)));
    if (slow.speed == 0) fail("a rank that is down stops the job", fmt::format("rank {}", slow.rank));
  }
  if (slow.part == Slow::Part::link) {
    const std::int64_t nodes = (plan.gpus() + cluster.node.gpus - 1) / cluster.node.gpus;
    const auto names = fabric_link_names(cluster, std::max<std::int64_t>(cluster.max_nodes, nodes));
    if (std::find(names.begin(), names.end(), slow.link) == names.end())
      fail(names.empty() ? fmt::format("the fabric of {} has no links between switches", cluster.name)
                         : "a link is named as `topo --route` prints it",
           fmt::format("found \"{}\"", slow.link),
           names.empty() ? "" : fmt::format("{} to {}", names.front(), names.back()));
  }
  const auto is_node = [&cluster](std::int64_t node) {
    return node >= 0 && (cluster.max_nodes == 0 || node < cluster.max_nodes);
  };
  if (slow.part == Slow::Part::gpu_link) {
    const std::string values =
        fmt::format("nvlink {}.{} of {} GPUs a node", slow.gpu.node, slow.gpu.gpu, cluster.node.gpus);
    if (slow.gpu.gpu < 0 || slow.gpu.gpu >= cluster.node.gpus || !is_node(slow.gpu.node))
      fail("a GPU's links are named by its node in the cluster and its place there, as 3.1", values);
    if (slow.speed == 0) fail("a GPU without links to its node stops the job", values);
  }
  if (slow.part == Slow::Part::nic &&
      (slow.nic.nic < 0 || slow.nic.nic >= cluster.node.nics || !is_node(slow.nic.node)))
    fail("a NIC is named by its node in the cluster and its place there, as 3.1",
         fmt::format("nic {}.{} of {} a node", slow.nic.node, slow.nic.nic, cluster.node.nics));
}

// The ranks that a slow NIC serves, or the rank that is slow or has slow links.
std::vector<int> ranks_of(const Slow& slow, const Plan& plan, const Cluster& cluster,
                          const Conditions& conditions) {
  if (slow.part == Slow::Part::rank) return {slow.rank};
  const std::int64_t gpus = cluster.node.gpus;
  const std::vector<std::int64_t> nodes = place_nodes(cluster, (plan.gpus() + gpus - 1) / gpus, conditions);
  std::vector<int> ranks;
  const bool is_link = slow.part == Slow::Part::gpu_link;
  const auto found = std::find(nodes.begin(), nodes.end(), is_link ? slow.gpu.node : slow.nic.node);
  if (found == nodes.end()) return ranks;
  // A NIC that is down burdens the NIC that takes over, so all ranks of the node may be slower.
  for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
    const std::int64_t rank = (found - nodes.begin()) * gpus + gpu;
    if (is_link && gpu != slow.gpu.gpu) continue;
    if (rank < plan.gpus()) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// The ranks that take part in the collectives inside one op of `rank`.
std::vector<int> lock_step(const Plan& plan, int rank) {
  const RankGrid grid(plan);
  std::vector<int> ranks;
  for (const int peer : grid.group(rank, Axis::tp)) {
    const std::vector<int> ring = grid.group(peer, Axis::cp);
    ranks.insert(ranks.end(), ring.begin(), ring.end());
  }
  if (plan.ep == 1) return ranks;
  const RankGrid experts = RankGrid::of_experts(plan);
  std::vector<int> met;
  for (const int peer : ranks) {
    const std::vector<int> group = experts.group(peer, Axis::ep);
    met.insert(met.end(), group.begin(), group.end());
  }
  return met;
}

// Adds the class of the first position whose class is not special. It stands for all other classes.
template <typename ClassOf>
void add_first_other(std::set<int>& special, const std::vector<int>& positions, ClassOf class_of) {
  for (const int position : positions) {
    if (!special.insert(class_of(position)).second) continue;
    return;
  }
}

}  // namespace

std::string to_string(Placement placement) {
  static constexpr std::array names = {"compact", "scattered", "random"};
  return names.at(static_cast<std::size_t>(placement));
}

std::vector<Slow> parse_slow(const std::string& text) {
  std::vector<Slow> list;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    if (!read_slow(word, list.emplace_back()))
      fail("must be a list of rank=N:SPEED, nvlink=NODE.GPU:SPEED, nic=NODE.NIC:SPEED or link=NAME:SPEED",
           fmt::format("found \"{}\"", word), "rank=17:0.8");
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return list;
}

void require_conditions(const Conditions& conditions, const Plan& plan, const Cluster& cluster) {
  for (const Slow& slow : conditions.slow) require_slow(slow, plan, cluster);
}

std::vector<std::int64_t> place_nodes(const Cluster& cluster, std::int64_t nodes,
                                      const Conditions& conditions) {
  if (const std::int64_t others = conditions.nodes_before + conditions.nodes_after; others > 0) {
    Conditions of_all = conditions;
    of_all.nodes_before = of_all.nodes_after = 0;
    const std::vector<std::int64_t> placed = place_nodes(cluster, nodes + others, of_all);
    const auto first = placed.begin() + conditions.nodes_before;
    return {first, first + nodes};
  }
  const std::int64_t all = std::max<std::int64_t>(cluster.max_nodes, nodes);
  std::vector<std::int64_t> placed(static_cast<std::size_t>(nodes));
  std::iota(placed.begin(), placed.end(), 0);
  if (conditions.placement == Placement::random) {
    std::vector<std::int64_t> any(static_cast<std::size_t>(all));
    std::iota(any.begin(), any.end(), 0);
    std::mt19937_64 random(conditions.seed);
    for (std::size_t i = 0; i < placed.size(); ++i) {
      std::swap(any[i], any[i + random() % (any.size() - i)]);
      placed[i] = any[i];
    }
  }
  if (conditions.placement == Placement::scattered && !cluster.fabric.levels.empty()) {
    const std::int64_t below = cluster.fabric.levels.front().nodes;
    const std::int64_t switches = std::max<std::int64_t>(1, all / below);
    std::int64_t next = 0;
    for (std::int64_t turn = 0; turn < below; ++turn) {
      for (std::int64_t at = 0; at < switches && next < nodes; ++at)
        placed[static_cast<std::size_t>(next++)] = at * below + turn;
    }
    // The nodes of a last switch that is not full.
    for (std::int64_t node = switches * below; next < nodes; ++node)
      placed[static_cast<std::size_t>(next++)] = node;
  }
  return placed;
}

double speed_of(const Plan& plan, const Conditions& conditions, int rank) {
  if (conditions.slow.empty()) return 1;
  double slowest = 1;
  const std::vector<int> met = lock_step(plan, rank);
  for (const Slow& slow : conditions.slow) {
    if (slow.part == Slow::Part::rank && std::find(met.begin(), met.end(), slow.rank) != met.end())
      slowest = std::min(slowest, slow.speed);
  }
  return slowest;
}

std::vector<int> replicas_to_walk(const Plan& plan, const Cluster& cluster, const Conditions& conditions) {
  std::vector<int> all(static_cast<std::size_t>(plan.dp));
  std::iota(all.begin(), all.end(), 0);
  if (conditions.has_jitter()) return all;
  if (conditions.slow.empty()) return {0};
  if (has_shared_links(cluster.fabric)) return all;
  const RankGrid grid(plan);
  const int shard = group_size(CommGroup::shards, plan);
  std::vector<int> position;  // by replica, among those that hold the same parameters
  for (const int replica : all) position.push_back(grid.replica_position(grid.rank({0, 0, 0, replica, 0})));
  std::set<int> groups, places;
  for (const Slow& slow : conditions.slow) {
    if (slow.part == Slow::Part::link) return all;
    for (const int rank : ranks_of(slow, plan, cluster, conditions)) {
      for (const int peer : lock_step(plan, rank)) {
        const int at = position[static_cast<std::size_t>(grid.coordinates(peer)[kReplica])];
        groups.insert(at / shard);
        places.insert(at % shard);
      }
    }
  }
  add_first_other(groups, position, [shard](int at) { return at / shard; });
  add_first_other(places, position, [shard](int at) { return at % shard; });
  std::vector<int> walked;
  for (const int replica : all) {
    const int at = position[static_cast<std::size_t>(replica)];
    if (groups.contains(at / shard) && places.contains(at % shard)) walked.push_back(replica);
  }
  return walked;
}

}  // namespace rehearse
