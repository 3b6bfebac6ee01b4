#include <fmt/format.h>

#include <limits>
#include <memory>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/units.h"
#include "cli/verbs.h"
#include "cluster/cluster.h"

namespace rehearse {

namespace {

struct TopoOptions {
  std::string cluster;
  std::int64_t gpus = 0;
  std::vector<std::int64_t> route;
  bool json = false;
};

std::string place(const Cluster& cluster, int gpu) {
  return fmt::format("GPU {} (node {}, local {})", gpu, gpu / cluster.node.gpus, gpu % cluster.node.gpus);
}

int last_gpu(const Cluster& cluster) {
  constexpr int most = std::numeric_limits<int>::max();
  return cluster.max_nodes == 0 ? most : cluster.max_nodes * cluster.node.gpus - 1;
}

void require_gpu(const Cluster& cluster, std::int64_t gpu) {
  if (gpu >= 0 && gpu <= last_gpu(cluster)) return;
  throw InputError({"command line", "--route", fmt::format("must name GPUs from 0 to {}", last_gpu(cluster)),
                    fmt::format("found {}", gpu), std::to_string(gpu < 0 ? 0 : last_gpu(cluster))});
}

void print_route(const Cluster& cluster, const TopoOptions& options) {
  for (const std::int64_t gpu : options.route) require_gpu(cluster, gpu);
  const int from = static_cast<int>(options.route[0]);
  const int to = static_cast<int>(options.route[1]);
  if (from == to) throw InputError({"command line", "--route", "must name two different GPUs", "", ""});
  const Path path = path_between(cluster, from, to);
  const auto hops =
      path.crosses_nodes
          ? fmt::format("NIC {} out -> fabric ({}) -> NIC {} in", cluster.nic_of(from % cluster.node.gpus),
                        cluster.fabric, cluster.nic_of(to % cluster.node.gpus))
          : fmt::format("{} out -> {} in", cluster.node.gpu_link_kind, cluster.node.gpu_link_kind);
  if (options.json) {
    const Json json = {{"from", from},
                       {"to", to},
                       {"crosses_nodes", path.crosses_nodes},
                       {"links", hops},
                       {"bandwidth_bytes_per_s", path.port.bandwidth},
                       {"latency_s", path.port.latency}};
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("{} -> {}\n  {}\n  bound {} each way, latency {}\n", place(cluster, from), place(cluster, to),
             hops, format_rate(path.port.bandwidth), format_seconds(path.port.latency));
}

// Half of the nodes send to the other half through all of their NICs; inside one node, half of its GPUs do.
double bisection(const Cluster& cluster, std::int64_t nodes) {
  if (nodes < 2) return cluster.node.gpus / 2 * cluster.node.gpu_link.bandwidth;
  return static_cast<double>(nodes / 2) * cluster.node.nics * cluster.node.nic.bandwidth;
}

void print_cluster(const Cluster& cluster, const TopoOptions& options) {
  const Node& node = cluster.node;
  const std::int64_t gpus =
      options.gpus > 0 ? options.gpus : node.gpus * std::max<std::int64_t>(cluster.max_nodes, 1);
  const std::int64_t nodes = (gpus + node.gpus - 1) / node.gpus;
  if (options.json) {
    Json peaks = Json::object();
    for (const auto& [precision, flops] : cluster.gpu.peak_flops) peaks[precision] = flops;
    const Json json = {{"name", cluster.name},
                       {"gpu",
                        {{"name", cluster.gpu.name},
                         {"memory_bytes", cluster.gpu.memory_bytes},
                         {"memory_bandwidth_bytes_per_s", cluster.gpu.memory_bandwidth},
                         {"peak_flops", peaks}}},
                       {"gpus_per_node", node.gpus},
                       {"gpu_link",
                        {{"kind", node.gpu_link_kind},
                         {"bandwidth_bytes_per_s", node.gpu_link.bandwidth},
                         {"latency_s", node.gpu_link.latency}}},
                       {"nics",
                        {{"count", node.nics},
                         {"kind", node.nic_kind},
                         {"bandwidth_bytes_per_s", node.nic.bandwidth},
                         {"latency_s", node.nic.latency}}},
                       {"fabric", cluster.fabric},
                       {"gpus", gpus},
                       {"nodes", nodes},
                       {"bisection_bytes_per_s", bisection(cluster, nodes)},
                       {"profile", cluster.profile},
                       {"source", cluster.source}};
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("{}\n", cluster.name);
  fmt::print("  GPU        {}, {}, {}\n", cluster.gpu.name, format_bytes(cluster.gpu.memory_bytes),
             format_rate(cluster.gpu.memory_bandwidth));
  for (const auto& [precision, flops] : cluster.gpu.peak_flops) {
    fmt::print("             {} {:.4g} TFLOPS dense\n", precision, flops * 1e-12);
  }
  fmt::print("  node       {} GPUs, {} {} each way per GPU, latency {}\n", node.gpus, node.gpu_link_kind,
             format_rate(node.gpu_link.bandwidth), format_seconds(node.gpu_link.latency));
  if (node.nics > 0) {
    fmt::print("             {} x {} {} each way, latency {}\n", node.nics, node.nic_kind,
               format_rate(node.nic.bandwidth), format_seconds(node.nic.latency));
    fmt::print("  fabric     {}, {} nodes at most\n", cluster.fabric,
               cluster.max_nodes == 0 ? "any number of" : std::to_string(cluster.max_nodes));
  }
  fmt::print("  {} GPUs   {} node{}, bisection {} each way\n", gpus, nodes, nodes == 1 ? "" : "s",
             format_rate(bisection(cluster, nodes)));
  fmt::print("  profile    {}\n  source     {}\n", cluster.profile.empty() ? "none yet" : cluster.profile,
             cluster.source);
}

}  // namespace

void add_topo(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("topo", "what a cluster is: GPUs, links, routes, bisection bandwidth");
  const auto options = std::make_shared<TopoOptions>();
  verb->add_option("cluster", options->cluster, "topology name or cluster JSON")
      ->required()
      ->option_text("CLUSTER");
  verb->add_option("--gpus", options->gpus, "GPUs taken of the cluster")
      ->option_text("N")
      ->check(CLI::Range(1, 1 << 30));
  verb->add_option("--route", options->route, "links and bound between two GPUs")
      ->expected(2)
      ->option_text("A B");
  verb->add_flag("--json", options->json, "print one JSON object");
  verb->footer(
      "Examples:\n"
      "  rehearse topo dgx-h100 --gpus 512\n"
      "  rehearse topo selene --route 0 17\n"
      "  rehearse topo my-cluster.json --json");
  verb->callback([options, &exit_code] {
    const Cluster cluster = read_cluster(options->cluster);
    if (options->route.empty()) {
      print_cluster(cluster, *options);
    } else {
      print_route(cluster, *options);
    }
    exit_code = kDone;
  });
}

}  // namespace rehearse
