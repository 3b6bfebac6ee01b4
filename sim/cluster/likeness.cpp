#include "cluster/likeness.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rehearse {

namespace {

constexpr double kRounding = 1e-9;  // for figures that are written in different units
constexpr double kLayout = 1;       // distance of two layouts: as a figure that is e times another
constexpr std::array<const char*, kParts> kPartNames = {"GPU", "GPUs per node", "GPU links", "NICs",
                                                        "fabric"};

// 0: equal.
double apart(double known, double asked) {
  if (known == asked) return 0;
  const double ratio = known > 0 && asked > 0 ? std::abs(std::log(asked / known)) : 1;
  return ratio <= kRounding ? 0 : ratio;
}

// Collects the differences of a part.
class Comparison {
 public:
  Comparison(Part part, Likeness& found) : part_(static_cast<std::size_t>(part)), found_(found) {}

  void kind(bool same) {
    if (same) return;
    found_.kin = false;
    found_.differs[part_] = true;
  }

  void figure(double known, double asked) { add(apart(known, asked)); }

  void layout(bool same) { add(same ? 0 : kLayout); }

 private:
  void add(double distance) {
    found_.distance += distance;
    found_.differs[part_] = found_.differs[part_] || distance > 0;
  }

  std::size_t part_;
  Likeness& found_;
};

double gpus_apart(const Gpu& known, const Gpu& asked) {
  double distance = apart(known.memory_bandwidth, asked.memory_bandwidth) +
                    apart(known.multiprocessors, asked.multiprocessors) +
                    apart(known.compute_capability, asked.compute_capability);
  for (const auto& [precision, peak] : known.peak_flops) {
    const auto other = asked.peak_flops.find(precision);
    distance += apart(peak, other == asked.peak_flops.end() ? 0 : other->second);
  }
  return known.peak_flops.size() < asked.peak_flops.size() ? distance + 1 : distance;
}

void compare_gpus(const Cluster& known, const Cluster& asked, Likeness& found) {
  Comparison gpus(Part::gpu, found);
  const double distance = gpus_apart(known.gpu, asked.gpu);
  gpus.kind(known.nccl.sm == asked.nccl.sm && (distance == 0 || known.gpu.name == asked.gpu.name));
  found.distance += distance;
  found.differs[static_cast<std::size_t>(Part::gpu)] |= distance > 0;
}

std::vector<NodeLink> links_among_gpus(const Node& node) {
  std::vector<NodeLink> links = node.wiring;
  std::erase_if(links, [](const NodeLink& link) { return is_nic(link.from) || is_nic(link.to); });
  return links;
}

void compare_wires(const Node& known, const Node& asked, Comparison& links) {
  const std::vector<NodeLink> a = links_among_gpus(known), b = links_among_gpus(asked);
  const bool same = std::ranges::equal(a, b, [](const NodeLink& one, const NodeLink& other) {
    return one.from == other.from && one.to == other.to && one.kind == other.kind;
  });
  links.kind(same);
  if (!same) return;
  for (auto one = a.begin(), other = b.begin(); one != a.end(); ++one, ++other)
    links.figure(one->bandwidth, other->bandwidth);
}

// Where NVLink joins many hosts, a job may take a part of them (cluster/share.h): then GPUs a host count.
void compare_sizes(const Cluster& known, const Cluster& asked, Likeness& found) {
  if (known.nccl.host_gpus > 0 && known.nccl.host_gpus == asked.nccl.host_gpus) return;
  Comparison nodes(Part::node, found);
  nodes.figure(known.node.gpus, asked.node.gpus);
  const bool on_a_switch = known.node.gpu_link_kind == "nvswitch";
  nodes.kind(on_a_switch || known.node.gpus == asked.node.gpus);
}

double nics_of_each_gpu(const Node& node) {
  return static_cast<double>(node.nics) / node.gpus;
}

void compare_links(const Cluster& known, const Cluster& asked, Likeness& found) {
  const Node &a = known.node, &b = asked.node;
  const NcclFacts &c = known.nccl, &d = asked.nccl;
  Comparison links(Part::gpu_links, found);
  links.kind(a.gpu_link_kind == b.gpu_link_kind && c.host_gpus == d.host_gpus);
  links.kind(c.rings == d.rings && c.island_gpus == d.island_gpus && c.island_kind == d.island_kind);
  compare_wires(a, b, links);
  links.figure(a.gpu_link.bandwidth, b.gpu_link.bandwidth);
  links.figure(a.gpu_link.latency, b.gpu_link.latency);
  links.figure(c.island_bandwidth, d.island_bandwidth);
}

bool same_nic_of_each_gpu(const Cluster& known, const Cluster& asked) {
  for (int gpu = 0; gpu < std::min(known.node.gpus, asked.node.gpus); ++gpu)
    if (known.nic_of(gpu) != asked.nic_of(gpu)) return false;
  return true;
}

void compare_nics(const Cluster& known, const Cluster& asked, Likeness& found) {
  const Node &a = known.node, &b = asked.node;
  Comparison nics(Part::nics, found);
  nics.kind(a.nic_kind == b.nic_kind && known.nccl.assumed_nics == asked.nccl.assumed_nics);
  if (a.nics * b.gpus == b.nics * a.gpus) nics.layout(same_nic_of_each_gpu(known, asked));
  nics.figure(nics_of_each_gpu(a), nics_of_each_gpu(b));
  nics.figure(a.nic.bandwidth, b.nic.bandwidth);
  nics.figure(a.nic.latency, b.nic.latency);
  nics.figure(a.nic_limits.efficiency, b.nic_limits.efficiency);
  nics.figure(a.nic_limits.messages_per_s, b.nic_limits.messages_per_s);
}

void compare_fabrics(const Cluster& known, const Cluster& asked, Likeness& found) {
  const Fabric &a = known.fabric, &b = asked.fabric;
  Comparison fabrics(Part::fabric, found);
  const bool same_levels = std::ranges::equal(
      a.levels, b.levels,
      [](const FabricLevel& one, const FabricLevel& other) { return one.nodes == other.nodes; });
  fabrics.kind(known.nccl.degraded == asked.nccl.degraded);
  fabrics.layout(a.kind == b.kind && a.rails == b.rails && a.minimal_routing == b.minimal_routing);
  fabrics.layout(a.extents == b.extents && same_levels);
  for (std::size_t i = 0; same_levels && i < a.levels.size(); ++i)
    fabrics.figure(a.levels[i].oversubscription, b.levels[i].oversubscription);
  fabrics.figure(a.link_bandwidth, b.link_bandwidth);
}

}  // namespace

Likeness likeness(const Cluster& known, const Cluster& asked, Reach reach) {
  Likeness found;
  found.kin = true;
  compare_gpus(known, asked, found);
  compare_sizes(known, asked, found);
  compare_links(known, asked, found);
  if (reach == Reach::node) return found;
  compare_nics(known, asked, found);
  compare_fabrics(known, asked, found);
  return found;
}

std::string differing_parts(const Likeness& likeness) {
  std::vector<std::string> names;
  for (std::size_t part = 0; part < kParts; ++part)
    if (likeness.differs[part]) names.emplace_back(kPartNames[part]);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

}  // namespace rehearse
