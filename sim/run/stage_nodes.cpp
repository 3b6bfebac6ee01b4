#include "run/stage_nodes.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "cluster/share.h"
#include "plan/ranks.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

constexpr auto kPp = static_cast<std::size_t>(Axis::pp);
constexpr std::size_t kMaxListedRanks = 1 << 20;

[[noreturn]] void fail(const std::string& rule, const std::string& values, const std::string& nearest = "") {
  throw InputError({"", "/stage_nodes", rule, values, nearest});
}

// A cluster's nodes with the NICs and the fabric of `job`.
NodeKind kind_of(const std::string& name, const Cluster& job) {
  NodeKind kind;
  kind.cluster = read_cluster(name);
  // In domains of many hosts, the job takes the same number of GPUs everywhere.
  if (even_share(kind.cluster, job.node.gpus) == job.node.gpus)
    kind.cluster = with_share(std::move(kind.cluster), job.node.gpus);
  Node& node = kind.cluster.node;
  if (node.gpus != job.node.gpus)
    fail("all nodes of a job must have the same number of GPUs",
         fmt::format("{} has {}, {} has {}", name, node.gpus, job.name, job.node.gpus));
  if (!node.wiring.empty() || !job.node.wiring.empty())
    fail("nodes are mixed only where switches join their GPUs",
         fmt::format("{} has links of its own", node.wiring.empty() ? job.name : name));
  if (kind.cluster.profile.empty())
    throw MissingCalibration(
        fmt::format("there is no profile of {} yet: {} cannot be mixed in", kind.cluster.gpu.name, name));
  kind.profile = read_profile(kind.cluster.profile);
  node.nics = job.node.nics;
  node.nic = job.node.nic;
  node.nic_kind = job.node.nic_kind;
  node.nic_limits = job.node.nic_limits;
  node.nic_of_gpu = job.node.nic_of_gpu;
  kind.cluster.fabric = job.fabric;
  kind.cluster.max_nodes = job.max_nodes;
  return kind;
}

void require_whole_nodes(const StageNodes& nodes, const Plan& plan, const Cluster& job) {
  const RankGrid grid(plan);
  const auto kind = [&](int rank) {
    return nodes.kind_of_rank[static_cast<std::size_t>(grid.coordinates(rank)[kPp])];
  };
  for (int rank = 0; rank < grid.size(); ++rank) {
    const int first = rank / job.node.gpus * job.node.gpus;
    if (kind(rank) != kind(first))
      fail("a node must have one kind of GPU",
           fmt::format("ranks {} and {} share node {}", first, rank, rank / job.node.gpus));
  }
}

}  // namespace

StageNodes read_stage_nodes(const std::string& text, const Plan& plan, const Cluster& job) {
  StageNodes nodes;
  std::vector<std::string> names;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    std::string_view word = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    std::size_t count = 1;
    if (const std::size_t star = word.find('*'); star != std::string_view::npos) {
      const auto [end, error] = std::from_chars(word.data(), word.data() + star, count);
      if (error != std::errc() || end != word.data() + star || count < 1 || count > kMaxListedRanks)
        fail("must be a list of COUNT*CLUSTER", fmt::format("found \"{}\"", word), "2*dgx-h100,2*dgx-a100");
      word.remove_prefix(star + 1);
    }
    const std::string name(word);
    const auto known = std::find(names.begin(), names.end(), name);
    const auto kind = static_cast<std::size_t>(known - names.begin());
    if (known == names.end()) {
      nodes.kinds.push_back(kind_of(name, job));
      names.push_back(name);
    }
    nodes.kind_of_rank.insert(nodes.kind_of_rank.end(), count, kind);
  }
  if (nodes.empty()) return nodes;
  if (nodes.kind_of_rank.size() != static_cast<std::size_t>(plan.pp))
    fail("must name the nodes of each pipeline rank",
         fmt::format("{} named, pp = {}", nodes.kind_of_rank.size(), plan.pp));
  require_whole_nodes(nodes, plan, job);
  return nodes;
}

Prices price_stages(const Work& work, const Plan& plan, const StageNodes& nodes) {
  Prices prices;
  prices.times.stages.resize(work.parts.size());
  prices.transfers.resize(work.parts.size());
  prices.times.step.resize(static_cast<std::size_t>(plan.pp));
  for (std::size_t kind = 0; kind < nodes.kinds.size(); ++kind) {
    const auto is_own = [&](int pipeline_rank) {
      return nodes.kind_of_rank[static_cast<std::size_t>(pipeline_rank)] == kind;
    };
    const auto rank_of = [&](std::size_t stage) { return pipeline_rank_of(static_cast<int>(stage), plan); };
    Work own = work;
    for (std::size_t stage = 0; stage < own.parts.size(); ++stage)
      if (!is_own(rank_of(stage))) own.parts[stage].clear();
    const Prices of_kind = price(own, plan, nodes.kinds[kind].cluster, nodes.kinds[kind].profile);
    for (std::size_t stage = 0; stage < own.parts.size(); ++stage) {
      if (!is_own(rank_of(stage))) continue;
      prices.times.stages[stage] = of_kind.times.stages[stage];
      prices.transfers[stage] = of_kind.transfers[stage];
    }
    for (int rank = 0; rank < plan.pp; ++rank)
      if (is_own(rank))
        prices.times.step[static_cast<std::size_t>(rank)] =
            of_kind.times.step[static_cast<std::size_t>(rank)];
    prices.priced_s += of_kind.priced_s;
    prices.extrapolated_s += of_kind.extrapolated_s;
    prices.unmeasured_s += of_kind.unmeasured_s;
    prices.launch_bound_s += of_kind.launch_bound_s;
    prices.slowest_gpu = std::max(prices.slowest_gpu, of_kind.slowest_gpu);
  }
  return prices;
}

}  // namespace rehearse
