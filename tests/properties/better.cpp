#include "better.h"

#include <fmt/core.h>

#include <cmath>
#include <ostream>

#include "base/error.h"
#include "cost/timed_on.h"

namespace rehearse::properties {

namespace {

const Node& node(const Experiment& experiment) {
  return experiment.cluster.node;
}

double peak(const Experiment& experiment, const char* precision) {
  const auto found = experiment.cluster.gpu.peak_flops.find(precision);
  return found == experiment.cluster.gpu.peak_flops.end() ? 0 : found->second;
}

std::string in_file(double value, const std::string& unit) {
  return fmt::format("{:.17g}{}", value, unit);
}

// All peaks at once, by one figure: a GPU of a higher clock.
Json clocked(const Experiment& experiment, double times) {
  Json peaks = Json::object();
  for (const auto& [precision, flops] : experiment.cluster.gpu.peak_flops)
    peaks[precision] = in_file(times * flops, "FLOPS");
  return {{"gpu", {{"peak", peaks}}}};
}

std::int64_t whole(double value, double times) {
  return static_cast<std::int64_t>(std::ceil(value * times));
}

// More GPUs on the switch of a node, each with the NICs that it has now. 0: the job needs several nodes, or
// the number is tied to other figures.
double gpus_of_the_only_node(const Experiment& experiment) {
  const Node& n = node(experiment);
  const bool is_free = n.gpu_link_kind == "nvswitch" && n.wiring.empty() && n.nic_of_gpu.empty() &&
                       n.nics % n.gpus == 0 && experiment.cluster.nccl.host_gpus == 0;
  return is_free && experiment.plan.gpus() <= n.gpus ? n.gpus : 0;
}

Json larger_node(const Experiment& experiment, double times) {
  const Node& n = node(experiment);
  const std::int64_t gpus = whole(n.gpus, times);
  Json changes = {{"gpus", gpus}};
  if (n.nics > 0) changes["nics"] = {{"count", n.nics / n.gpus * gpus}};
  if (n.host.adam_parameters_per_s > 0)
    changes["host"] = {
        {"adam_parameters_per_s", n.host.adam_parameters_per_s / n.gpus * static_cast<double>(gpus)}};
  return {{"node", changes}};
}

// Switches that serve more nodes.
Json larger_levels(const Experiment& experiment, double times) {
  Json levels = Json::array();
  for (const FabricLevel& level : experiment.cluster.fabric.levels)
    levels.push_back({{"name", level.name},
                      {"nodes", whole(level.nodes, std::ceil(times))},
                      {"oversubscription", level.oversubscription}});
  return {{"fabric", {{"levels", levels}}}};
}

Json change(const Experiment& experiment, const Better& better, double times) {
  if (better.pointer == "/gpu/peak") return clocked(experiment, times);
  if (better.pointer == "/node/gpus") return larger_node(experiment, times);
  if (better.pointer == "/fabric/levels") return larger_levels(experiment, times);
  const double now = better.now(experiment);
  const double value = better.is_better_when_less ? now / times : now * times;
  Json changes = Json::object();
  Json& place = changes[Json::json_pointer(better.pointer)];
  if (better.unit.empty())
    place = static_cast<std::int64_t>(std::ceil(value));
  else
    place = in_file(value, better.unit);
  return changes;
}

}  // namespace

void showValue(const Better& better, std::ostream& out) {
  out << better.name;
}

const std::vector<Better>& better_figures() {
  using E = const Experiment&;
  static const std::vector<Better> figures = {
      {"all peaks", "/gpu/peak", "FLOPS", [](E) { return 1.0; }},
      {"bf16 peak", "/gpu/peak/bf16", "FLOPS", [](E e) { return peak(e, "bf16"); }},
      {"fp16 peak", "/gpu/peak/fp16", "FLOPS", [](E e) { return peak(e, "fp16"); }},
      {"fp8 peak", "/gpu/peak/fp8", "FLOPS", [](E e) { return peak(e, "fp8"); }},
      {"fp4 peak", "/gpu/peak/fp4", "FLOPS", [](E e) { return peak(e, "fp4"); }},
      {"fp32 peak", "/gpu/peak/fp32", "FLOPS", [](E e) { return peak(e, "fp32"); }},
      {"memory bandwidth", "/gpu/memory_bandwidth", "B/s",
       [](E e) { return e.cluster.gpu.memory_bandwidth; }},
      {"memory", "/gpu/memory", "B", [](E e) { return e.cluster.gpu.memory_bytes; }},
      {"multiprocessors", "/gpu/multiprocessors", "",
       [](E e) { return static_cast<double>(e.cluster.gpu.multiprocessors); }, false, true},
      {"GPU link bandwidth", "/node/gpu_link/bandwidth", "B/s",
       [](E e) { return node(e).gpu_link.bandwidth; }, false, true},
      {"GPU link latency", "/node/gpu_link/latency", "s", [](E e) { return node(e).gpu_link.latency; }, true,
       true},
      {"NIC bandwidth", "/node/nics/bandwidth", "B/s", [](E e) { return node(e).nic.bandwidth; }, false,
       true},
      {"NIC latency", "/node/nics/latency", "s", [](E e) { return node(e).nic.latency; }, true, true},
      {"NICs", "/node/nics/count", "", [](E e) { return static_cast<double>(node(e).nics); }, false, true},
      {"oversubscription", "/fabric/oversubscription", "",
       [](E e) {
         const std::vector<FabricLevel>& levels = e.cluster.fabric.levels;
         return levels.empty() || levels.back().oversubscription <= 1 ? 0 : levels.back().oversubscription;
       },
       true, true},
      {"GPUs per node", "/node/gpus", "", gpus_of_the_only_node, false, true},
      {"nodes of a switch", "/fabric/levels", "",
       [](E e) { return e.cluster.fabric.kind == FabricKind::fat_tree ? 1.0 : 0.0; }, false, true},
      {"host link bandwidth", "/node/host/link/bandwidth", "B/s",
       [](E e) { return node(e).host.link.bandwidth; }},
      {"host link latency", "/node/host/link/latency", "s", [](E e) { return node(e).host.link.latency; },
       true},
      {"Adam on the host", "/node/host/adam_parameters_per_s", "",
       [](E e) { return node(e).host.adam_parameters_per_s; }},
      {"island bandwidth", "/nccl/island/bandwidth", "B/s",
       [](E e) { return e.cluster.nccl.island_bandwidth; }, false, true},
      {"launch cost", "", "", [](E e) { return e.profile.host_launch_s; }, true},
  };
  return figures;
}

std::optional<Experiment> improved(const Run& run, const Better& better, double times) {
  if (!(better.now(run.experiment) > 0)) return std::nullopt;
  if (better.pointer.empty()) {
    Experiment cheaper = run.experiment;
    cheaper.profile.host_launch_s /= times;
    cheaper.profile.host_collective_s /= times;
    return cheaper;
  }
  // Slow parts and placements count GPUs and nodes.
  const bool by_layout = better.pointer == "/node/gpus" || better.pointer == "/fabric/levels";
  if (by_layout && (run.source.json.contains("placement") || run.source.json.contains("slow")))
    return std::nullopt;
  ScenarioSource source = run.source;
  Json& changes = source.json["cluster_changes"];
  if (changes.is_null()) changes = Json::object();
  changes.merge_patch(change(run.experiment, better, times));
  try {
    Experiment better_one = read(source);
    better_one.profile = run.experiment.profile;
    return better_one;
  } catch (const InputError&) {
    return std::nullopt;  // links of a wiring add up to the GPU's
  }
}

}  // namespace rehearse::properties
