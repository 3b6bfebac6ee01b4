// On which systems were collectives measured, and which of them is another cluster like?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/likeness.h"

namespace rehearse::nccl {

struct Model;

// As it was when something was measured on it.
struct KnownSystem {
  std::string name;
  Cluster cluster;
};

// The system whose measurements hold for a cluster's messages.
struct Nearest {
  const KnownSystem* system = nullptr;     // null: the cluster is like none
  Likeness likeness;                       // of that system and the cluster
  std::optional<std::size_t> index;        // of Model::systems
  std::optional<std::size_t> corrections;  // of the system whose corrections apply: that one, or its equal
};

// Among the systems of which something was measured within a node, or across nodes, those that the cluster
// is kin to (cluster/likeness.h). The first of: an equal one that the user measured; an equal one; one with
// GPUs of the same name; the one with the nearest figures. Whole clusters decide between equal nodes.
Nearest nearest_system(const Model& model, const Cluster& cluster, Reach reach);

// Index of the system of that name whose figures are these; appended where there is none.
std::size_t add_system(std::vector<KnownSystem>& systems, const std::string& name, const Cluster& cluster);

// What the messages of a cluster are predicted by: "measured on dgx-h100", "like dgx-h100, NICs differ",
// "modelled", and of both where messages within and across nodes are of several kinds.
std::string measured_on(const Model& model, const Cluster& cluster, bool across);

}  // namespace rehearse::nccl
