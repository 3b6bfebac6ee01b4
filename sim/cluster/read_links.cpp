#include "cluster/read_links.h"

#include <fmt/core.h>

namespace rehearse {

namespace {

constexpr double kOversubscription = 1e6;
constexpr int kNodes = 1 << 20;
constexpr std::size_t kLinks = 1 << 16;
constexpr std::size_t kLevels = 8;
constexpr std::size_t kDimensions = 3;

std::vector<std::string> read_names(const JsonReader& reader, const std::string& key) {
  std::vector<std::string> names;
  const Json& list = reader.value(key);
  if (!list.is_array()) reader.fail(key, "must be a list of names", list.dump());
  for (const Json& name : list) {
    if (!name.is_string() || name.get<std::string>().empty())
      reader.fail(key, "must be a list of names", name.dump());
    names.push_back(name.get<std::string>());
  }
  return names;
}

std::vector<int> read_integers(const JsonReader& reader, const std::string& key, int least, int most) {
  std::vector<int> values;
  const Json& list = reader.value(key);
  if (!list.is_array()) reader.fail(key, "must be a list of integers", list.dump());
  for (const Json& value : list) {
    if (!value.is_number_integer() || value < least || value > most)
      reader.fail(key, fmt::format("must hold integers from {} to {}", least, most), value.dump());
    values.push_back(value.get<int>());
  }
  return values;
}

void add_links(const JsonReader& reader, std::vector<NodeLink>& links) {
  const std::string kind = reader.text("kind");
  const double bandwidth = reader.quantity("bandwidth", physical::kBandwidth);
  if (reader.has("among")) {
    const std::vector<std::string> names = read_names(reader, "among");
    if (names.size() * names.size() > kLinks)
      reader.fail("among", fmt::format("makes over {} links", kLinks));
    for (std::size_t a = 0; a < names.size(); ++a) {
      for (std::size_t b = a + 1; b < names.size(); ++b)
        links.push_back({names[a], names[b], kind, bandwidth});
    }
  } else {
    const std::string hub = reader.text("hub");
    for (const std::string& name : read_names(reader, "to")) links.push_back({hub, name, kind, bandwidth});
  }
  reader.reject_unknown();
}

std::vector<FabricLevel> read_levels(const JsonReader& reader) {
  std::vector<FabricLevel> levels;
  for (const JsonReader& level : reader.objects("levels")) {
    FabricLevel& read = levels.emplace_back();
    read.name = level.text("name");
    read.nodes = static_cast<int>(level.integer("nodes", 1, kNodes));
    read.oversubscription = level.number_or("oversubscription", 1, 1e-3, kOversubscription);
    level.reject_unknown();
    if (levels.size() == 1) continue;
    const FabricLevel& below = levels[levels.size() - 2];
    if (read.nodes <= below.nodes || read.nodes % below.nodes != 0)
      level.fail("nodes", "must be a multiple of the level below",
                 fmt::format("{} above {}", read.nodes, below.nodes), fmt::format("{}", 2 * below.nodes));
  }
  if (levels.size() > kLevels) reader.fail("levels", fmt::format("may have {} levels at most", kLevels));
  return levels;
}

// "oversubscription" beside the levels sets that of the topmost one, for sweeps.
void override_oversubscription(const JsonReader& fabric, std::vector<FabricLevel>& levels) {
  if (!fabric.has("oversubscription")) return;
  if (levels.empty()) fabric.fail("oversubscription", "needs a level whose uplinks it is of");
  levels.back().oversubscription = fabric.number("oversubscription", 1e-3, kOversubscription);
}

void read_torus(const JsonReader& reader, const Cluster& cluster, Fabric& fabric) {
  fabric.extents = read_integers(reader, "extents", 1, kNodes);
  fabric.link_bandwidth = reader.quantity("link_bandwidth", physical::kBandwidth);
  std::int64_t nodes = 1;
  for (const int extent : fabric.extents) nodes = std::min<std::int64_t>(kNodes + 1, nodes * extent);
  if (fabric.extents.empty() || fabric.extents.size() > kDimensions || nodes != cluster.max_nodes)
    reader.fail("extents", fmt::format("must be 1 to {} numbers whose product is max_nodes", kDimensions),
                fmt::format("product {}, max_nodes {}", nodes, cluster.max_nodes));
}

void read_dragonfly(const JsonReader& reader, const Cluster& cluster, Fabric& fabric) {
  fabric.levels = read_levels(reader);
  fabric.minimal_routing = reader.choice<bool>("routing", {{"minimal", true}, {"adaptive", false}});
  if (fabric.levels.size() != 1) reader.fail("levels", "of a dragonfly must be one: the group");
  if (fabric.minimal_routing && cluster.max_nodes <= fabric.levels.front().nodes)
    reader.fail("levels", "of a dragonfly with minimal routing need max_nodes of two groups at least");
}

}  // namespace

std::vector<NodeLink> read_wiring(const JsonReader& node, const Node& so_far) {
  Node wired = so_far;
  for (const JsonReader& links : node.objects("wiring")) {
    add_links(links, wired.wiring);
    if (wired.wiring.size() > kLinks) node.fail("wiring", fmt::format("may have {} links at most", kLinks));
  }
  const std::vector<std::string> broken = broken_wiring(wired);
  if (!broken.empty()) node.fail("wiring", broken.front());
  return wired.wiring;
}

std::vector<int> read_nic_of_gpu(const JsonReader& nics, const Node& so_far) {
  std::vector<int> nic_of_gpu = read_integers(nics, "of_gpu", 0, so_far.nics - 1);
  if (static_cast<int>(nic_of_gpu.size()) != so_far.gpus)
    nics.fail("of_gpu", "must name one NIC for each GPU",
              fmt::format("{} names, {} GPUs", nic_of_gpu.size(), so_far.gpus));
  return nic_of_gpu;
}

Fabric read_fabric(const JsonReader& cluster, const Cluster& so_far) {
  Fabric fabric;
  if (!cluster.json().contains("fabric") || !cluster.json().at("fabric").is_object()) {
    fabric.note = cluster.text_or("fabric", "");
    return fabric;
  }
  const JsonReader reader = cluster.object("fabric");
  fabric.note = reader.text_or("note", "");
  fabric.kind = reader.choice<FabricKind>("kind", {{"switch", FabricKind::single_switch},
                                                   {"fat-tree", FabricKind::fat_tree},
                                                   {"dragonfly", FabricKind::dragonfly},
                                                   {"torus", FabricKind::torus}});
  if (fabric.kind == FabricKind::fat_tree) {
    fabric.levels = read_levels(reader);
    override_oversubscription(reader, fabric.levels);
    fabric.rails = reader.boolean_or("rails", false);
  } else if (fabric.kind == FabricKind::dragonfly) {
    read_dragonfly(reader, so_far, fabric);
  } else if (fabric.kind == FabricKind::torus) {
    read_torus(reader, so_far, fabric);
  }
  reader.reject_unknown();
  return fabric;
}

}  // namespace rehearse
