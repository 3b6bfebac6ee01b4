#include "cost/nccl/systems.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "cost/nccl/model.h"

namespace rehearse::nccl {

namespace {

// Kinds of data that exist for a system's messages of one reach.
struct Known {
  bool corrections = false;
  bool tables = false;
  bool own_tables = false;  // that the user measured
  bool any() const { return corrections || tables; }
};

std::vector<Known> known_systems(const Model& model, Reach reach) {
  const bool across = reach == Reach::cluster;
  std::vector<Known> known(model.systems.size());
  for (const Correction& correction : model.corrections)
    if (correction.system && correction.across == across) known[*correction.system].corrections = true;
  for (const Measured& table : model.measured) {
    if ((table.nodes > 1) != across) continue;
    known[table.system].tables = true;
    if (table.how == How::measured) known[table.system].own_tables = true;
  }
  return known;
}

// The cheap checks come first: this runs for every group of ranks.
Likeness likeness_of(const KnownSystem& system, const Cluster& cluster, Reach reach) {
  const Cluster& known = system.cluster;
  if (known.nccl.sm != cluster.nccl.sm || known.node.gpu_link_kind != cluster.node.gpu_link_kind) return {};
  return likeness(known, cluster, reach);
}

}  // namespace

Nearest nearest_system(const Model& model, const Cluster& cluster, Reach reach) {
  using Rank = std::tuple<bool, bool, bool, double, bool, double>;
  const std::vector<Known> known = known_systems(model, reach);
  Nearest nearest;
  Rank best{}, best_corrected{};
  std::optional<std::size_t> corrected;
  for (std::size_t i = 0; i < model.systems.size(); ++i) {
    if (!known[i].any()) continue;
    const KnownSystem& system = model.systems[i];
    const Likeness found = likeness_of(system, cluster, reach);
    if (!found.kin) continue;
    const Likeness whole = likeness(system.cluster, cluster, Reach::cluster);
    const bool differs = found.distance > 0;
    const bool is_other_gpu = differs && system.cluster.gpu.name != cluster.gpu.name;
    const Rank rank{differs,       !differs && !known[i].own_tables, is_other_gpu, found.distance, !whole.kin,
                    whole.distance};
    if (nearest.system == nullptr || rank < best) {
      best = rank;
      nearest.system = &system;
      nearest.likeness = found;
      nearest.index = i;
    }
    if (known[i].corrections && (!corrected || rank < best_corrected)) {
      best_corrected = rank;
      corrected = i;
    }
  }
  if (corrected && likeness(model.systems[*corrected].cluster, nearest.system->cluster, reach).same())
    nearest.corrections = corrected;
  return nearest;
}

std::size_t add_system(std::vector<KnownSystem>& systems, const std::string& name, const Cluster& cluster) {
  const auto found = std::ranges::find_if(systems, [&](const KnownSystem& system) {
    return system.name == name && likeness(system.cluster, cluster, Reach::cluster).same();
  });
  const auto index = static_cast<std::size_t>(found - systems.begin());
  if (index == systems.size()) systems.push_back({name, cluster});
  return index;
}

Basis basis_of(const Model& model, const Cluster& cluster, bool across) {
  const auto basis = [&](Reach reach) {
    const Nearest nearest = nearest_system(model, cluster, reach);
    if (nearest.system == nullptr) return Basis::modelled;
    const auto& differs = nearest.likeness.differs;
    const auto first =
        differs.begin() + static_cast<std::ptrdiff_t>(Part::gpu) + 1;  // peaks send no messages
    return std::any_of(first, differs.end(), [](bool each) { return each; }) ? Basis::scaled
                                                                             : Basis::measured;
  };
  const Basis within = basis(Reach::node);
  return across ? std::max(within, basis(Reach::cluster)) : within;
}

std::string measured_on(const Model& model, const Cluster& cluster, bool across) {
  const Nearest within = nearest_system(model, cluster, Reach::node);
  const auto in_words = [](const Nearest& nearest) -> std::string {
    if (nearest.system == nullptr) return "modelled";
    if (nearest.likeness.same()) return "measured on " + nearest.system->name;
    return fmt::format("as measured on {}, except {}", nearest.system->name,
                       differing_parts(nearest.likeness));
  };
  if (!across) return in_words(within);
  const Nearest between = nearest_system(model, cluster, Reach::cluster);
  const std::string near = in_words(within), far = in_words(between);
  if (near == far) return far;
  if (between.system == nullptr && within.system != nullptr) {
    const Likeness whole = likeness(within.system->cluster, cluster, Reach::cluster);
    if (!whole.same())
      return fmt::format("as measured on {}, except {}; modelled across nodes", within.system->name,
                         differing_parts(whole));
  }
  return fmt::format("{} within a node, {} across nodes", near, far);
}

}  // namespace rehearse::nccl
