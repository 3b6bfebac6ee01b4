#include <fmt/core.h>

#include <limits>
#include <memory>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/quantity.h"
#include "base/say.h"
#include "cli/file_kind.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "cluster/cluster.h"
#include "cluster/export_simgrid.h"
#include "cluster/graph.h"
#include "cluster/import.h"
#include "cluster/route.h"
#include "draw/cluster.h"

namespace rehearse {

namespace {

struct TopoOptions {
  std::string cluster;
  std::int64_t gpus = 0;
  std::vector<std::int64_t> route;
  bool json = false;
  std::string svg, simgrid, like, save;
};

std::string place(const Cluster& cluster, std::int64_t gpu) {
  return fmt::format("GPU {} (node {}, local {})", gpu, gpu / cluster.node.gpus, gpu % cluster.node.gpus);
}

void require_ends(const Cluster& cluster, const std::vector<std::int64_t>& ends) {
  const std::int64_t nodes = cluster.max_nodes == 0 ? std::int64_t{1} << 20 : cluster.max_nodes;
  const std::int64_t last = nodes * cluster.node.gpus - 1;
  for (const std::int64_t gpu : ends) {
    if (gpu < 0 || gpu > last)
      throw InputError({"command line", "--route", fmt::format("must name GPUs from 0 to {}", last),
                        fmt::format("found {}", gpu), std::to_string(gpu < 0 ? 0 : last)});
  }
  if (ends[0] == ends[1])
    throw InputError({"command line", "--route", "must name two different GPUs", "", ""});
}

void print_route(const Cluster& cluster, const TopoOptions& options) {
  require_ends(cluster, options.route);
  const std::int64_t from = options.route[0], to = options.route[1];
  const Route route = route_between(cluster, from, to);
  if (options.json) {
    Json links = Json::array();
    for (const Hop& hop : route.hops)
      links.push_back({{"link", hop.link},
                       {"kind", hop.kind},
                       {"bandwidth_bytes_per_s", hop.bandwidth},
                       {"shared", hop.shared}});
    const Json json = {{"from", from},
                       {"to", to},
                       {"crosses_nodes", route.crosses_nodes},
                       {"links", links},
                       {"bandwidth_bytes_per_s", route.port.bandwidth},
                       {"latency_s", route.port.latency}};
    fmt::print("{}\n", json.dump(2));
    return;
  }
  say("{} -> {}\n", place(cluster, from), place(cluster, to));
  for (const Hop& hop : route.hops)
    say("  {:<28} {:<12} {:>10}{}\n", hop.link, hop.kind, format_rate(hop.bandwidth),
        hop.shared ? "  oversubscribed: shared with others" : "");
  say("  bound {} each way, latency {}\n", format_rate(route.port.bandwidth),
      format_seconds(route.port.latency));
}

std::int64_t gpus_of(const Cluster& cluster, const TopoOptions& options) {
  if (options.gpus > 0) return options.gpus;
  return cluster.node.gpus * std::max<std::int64_t>(cluster.max_nodes, 1);
}

std::int64_t nodes_of(const Cluster& cluster, std::int64_t gpus) {
  return (gpus + cluster.node.gpus - 1) / cluster.node.gpus;
}

Json levels_json(const Cluster& cluster, std::int64_t nodes) {
  Json levels = Json::array();
  for (std::size_t level = 0; level < cluster.fabric.levels.size(); ++level) {
    const FabricLevel& of = cluster.fabric.levels[level];
    levels.push_back({{"name", of.name},
                      {"nodes", of.nodes},
                      {"switches_used", group_of(of, nodes - 1) + 1},
                      {"oversubscription", of.oversubscription},
                      {"uplinks_bytes_per_s", uplink_bandwidth(cluster, level)}});
  }
  return levels;
}

Json wiring_json(const Node& node) {
  Json links = Json::array();
  for (const NodeLink& link : links_of(node))
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"kind", link.kind},
                     {"bandwidth_bytes_per_s", link.bandwidth}});
  return links;
}

void print_json(const Cluster& cluster, std::int64_t gpus, const std::vector<std::string>& notes) {
  const Node& node = cluster.node;
  const std::int64_t nodes = nodes_of(cluster, gpus);
  Json peaks = Json::object();
  for (const auto& [precision, flops] : cluster.gpu.peak_flops) peaks[precision] = flops;
  Json nic_of_gpu = Json::array();
  for (int gpu = 0; gpu < node.gpus && node.nics > 0; ++gpu) nic_of_gpu.push_back(cluster.nic_of(gpu));
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
                     {"wiring", wiring_json(node)},
                     {"nics",
                      {{"count", node.nics},
                       {"kind", node.nic_kind},
                       {"bandwidth_bytes_per_s", node.nic.bandwidth},
                       {"latency_s", node.nic.latency},
                       {"efficiency", node.nic_limits.efficiency},
                       {"messages_per_s", node.nic_limits.messages_per_s},
                       {"limits_source", node.nic_limits.source},
                       {"of_gpu", nic_of_gpu}}},
                     {"fabric",
                      {{"kind", to_string(cluster.fabric.kind)},
                       {"note", cluster.fabric.note},
                       {"rails", cluster.fabric.rails},
                       {"extents", cluster.fabric.extents},
                       {"levels", levels_json(cluster, nodes)}}},
                     {"gpus", gpus},
                     {"nodes", nodes},
                     {"bisection_bytes_per_s", bisection_bandwidth(cluster, gpus)},
                     {"profile", cluster.profile},
                     {"source", cluster.source},
                     {"notes", notes}};
  fmt::print("{}\n", json.dump(2));
}

void print_fabric(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  say("  fabric     {}{}, {} nodes at most\n", to_string(fabric.kind),
      fabric.note.empty() ? "" : ": " + fabric.note,
      cluster.max_nodes == 0 ? "any number of" : std::to_string(cluster.max_nodes));
  for (std::size_t level = 0; level < fabric.levels.size(); ++level) {
    const FabricLevel& of = fabric.levels[level];
    say("             {} of {} nodes{}: {} up, oversubscribed {:g}:1\n", of.name, of.nodes,
        fabric.rails && level == 0 ? ", one a rail" : "", format_rate(uplink_bandwidth(cluster, level)),
        of.oversubscription);
  }
  if (fabric.kind == FabricKind::torus) {
    std::string extents;
    for (const int extent : fabric.extents)
      extents += fmt::format("{}{}", extents.empty() ? "" : " x ", extent);
    say("             {} routers, links of {} each way\n", extents, format_rate(fabric.link_bandwidth));
  }
}

void print_wiring(const Node& node) {
  std::map<std::pair<std::string, double>, int> counts;
  for (const NodeLink& link : node.wiring) ++counts[{link.kind, link.bandwidth}];
  for (const auto& [link, count] : counts)
    say("             {} x {} {} each way\n", count, link.first, format_rate(link.second));
}

void print_limits(const NicLimits& limits) {
  if (limits.source.empty()) return;
  say("             payload {:.2f} % of the line rate", 100 * limits.efficiency);
  if (limits.messages_per_s > 0) say(", {:.0f} million messages/s", 1e-6 * limits.messages_per_s);
  say("\n");
}

void print_cluster(const Cluster& cluster, std::int64_t gpus) {
  const Node& node = cluster.node;
  const std::int64_t nodes = nodes_of(cluster, gpus);
  say("{}\n", cluster.name);
  say("  GPU        {}", cluster.gpu.name);
  if (cluster.gpu.memory_bytes > 0)
    say(", {}, {}", format_bytes(cluster.gpu.memory_bytes), format_rate(cluster.gpu.memory_bandwidth));
  say("\n");
  for (const auto& [precision, flops] : cluster.gpu.peak_flops)
    say("             {} {:.4g} TFLOPS dense\n", precision, flops * 1e-12);
  say("  node       {} GPUs, {} {} each way per GPU, latency {}\n", node.gpus, node.gpu_link_kind,
      format_rate(node.gpu_link.bandwidth), format_seconds(node.gpu_link.latency));
  print_wiring(node);
  if (node.nics > 0) {
    say("             {} x {} {} each way, latency {}\n", node.nics, node.nic_kind,
        format_rate(node.nic.bandwidth), format_seconds(node.nic.latency));
    print_limits(node.nic_limits);
    print_fabric(cluster);
  }
  say("  {} GPUs   {} node{}, bisection {} each way\n", gpus, nodes, nodes == 1 ? "" : "s",
      format_rate(bisection_bandwidth(cluster, gpus)));
  say("  profile    {}\n  source     {}\n", cluster.profile.empty() ? "none yet" : cluster.profile,
      cluster.source);
}

void require_gpus(const Cluster& cluster, std::int64_t gpus) {
  const std::int64_t most = std::int64_t{cluster.max_nodes} * cluster.node.gpus;
  if (cluster.max_nodes > 0 && gpus > most)
    throw InputError({"command line", "--gpus", fmt::format("cluster {} has fewer GPUs", cluster.name),
                      fmt::format("{} asked for, {} there", gpus, most), std::to_string(most)});
}

void require_dump(const TopoOptions& options) {
  const auto fail = [](const char* flag, const char* rule) {
    throw InputError({"command line", flag, rule, "", ""});
  };
  const bool dumped = is_topology_dump(options.cluster);
  if (!options.save.empty() && (!dumped || options.like.empty()))
    fail("--save", "writes a cluster from a topology dump and --like NAME");
  if (!options.like.empty() && !dumped) fail("--like", "completes a topology dump (.xml or .txt)");
}

ImportedNode read(const TopoOptions& options) {
  if (!is_topology_dump(options.cluster)) return {read_cluster(options.cluster), true, true, false, {}};
  if (options.like.empty()) return import_topology(options.cluster);
  const Cluster like = read_cluster(options.like);
  ImportedNode imported = import_topology(options.cluster, &like);
  if (!options.save.empty())
    write_file(options.save, [&](std::ostream& out) { out << write_imported(imported, options.like, like); });
  return imported;
}

void show(const TopoOptions& options) {
  require_writable({options.save, options.svg, options.simgrid}, options.json ? Prints::data : Prints::talk);
  require_dump(options);
  const ImportedNode imported = read(options);
  const Cluster& cluster = imported.cluster;
  for (const std::string& note : imported.notes)
    say(stderr, "{}{}\n", note.starts_with("warning: ") ? "" : "note: ", note);
  if (!options.route.empty()) return print_route(cluster, options);
  const std::int64_t gpus = gpus_of(cluster, options);
  require_gpus(cluster, gpus);
  if (!options.svg.empty())
    write_file(options.svg,
               [&](std::ostream& out) { out << draw_cluster(cluster, nodes_of(cluster, gpus)); });
  if (!options.simgrid.empty())
    write_file(options.simgrid,
               [&](std::ostream& out) { write_simgrid(out, cluster, nodes_of(cluster, gpus)); });
  options.json ? print_json(cluster, gpus, imported.notes) : print_cluster(cluster, gpus);
}

}  // namespace

Verb topo_verb() {
  const auto options = std::make_shared<TopoOptions>();
  Verb verb{"topo", "what a cluster is: GPUs, links, routes, bisection bandwidth"};
  verb.add({.names = {"cluster"},
            .target = &options->cluster,
            .help =
                "topology name, cluster JSON, NCCL topology XML or the text of nvidia-smi topo -m; - reads "
                "standard input",
            .value = "CLUSTER",
            .required = true});
  verb.add({.names = {"--gpus"},
            .target = &options->gpus,
            .help = "GPUs taken of the cluster",
            .value = "N",
            .bounds = {{1, 1 << 30}}});
  verb.add({.names = {"--route"},
            .target = &options->route,
            .help = "links and bound between two GPUs",
            .value = "A B",
            .arity = Arity::two});
  verb.add({{"--json"}, &options->json, "print one JSON object"});
  verb.add({.names = {"--svg"},
            .target = &options->svg,
            .help = "draw the cluster",
            .value = "FILE",
            .refuse = named_as(".svg")});
  verb.add({{"--export-simgrid"}, &options->simgrid, "write a SimGrid platform", "FILE.xml"});
  verb.add(
      {{"--save"}, &options->save, "write a topology dump as a cluster that --cluster takes", "FILE.json"});
  verb.add({{"--like"},
            &options->like,
            "of a topology dump: the cluster that gives GPU, link rates, latencies and fabric",
            "NAME"});
  verb.footer =
      "Examples:\n"
      "  rehearse topo dgx-h100 --gpus 512\n"
      "  rehearse topo meta-24k-h100 --route 0 6144\n"
      "  rehearse topo dgx-1-v100 --svg node.svg\n"
      "  rehearse topo my-cluster.json --json\n"
      "  nvidia-smi topo -m | rehearse topo - --like dgx-h100\n"
      "  rehearse topo nccl-topology.xml --save mine.json --like dgx-h100";
  verb.run = [options] {
    show(*options);
    return kDone;
  };
  return verb;
}

}  // namespace rehearse
