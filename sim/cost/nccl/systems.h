// On which systems were collectives measured, and which of them does another cluster resemble?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/likeness.h"

namespace rehearse::nccl {

struct Model;

// A system in the state in which it was measured.
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

// Chooses among the systems with measurements of this reach (within a node, or across nodes) that the cluster
// is kin to (cluster/likeness.h). The order of preference:
// - an equal system that the user measured;
// - an equal system;
// - a system with GPUs of the same name;
// - the system with the nearest figures.
//
// Whole clusters decide between equal nodes.
Nearest nearest_system(const Model& model, const Cluster& cluster, Reach reach);

// Index of the system of that name whose figures are these; appended where there is none.
std::size_t add_system(std::vector<KnownSystem>& systems, const std::string& name, const Cluster& cluster);

// The basis of the predicted message times of a cluster. Scaled: a measured time, times the ratio of NCCL's
// estimates for this cluster and for the measured system.
enum class Basis : std::uint8_t { measured, scaled, modelled };

// The weaker one of messages within and `across` nodes.
Basis basis_of(const Model& model, const Cluster& cluster, bool across);

// In words: "measured on dgx-h100", "as measured on dgx-h100, except NICs", "modelled". If messages within
// and across nodes have different bases, both are named.
std::string measured_on(const Model& model, const Cluster& cluster, bool across);

}  // namespace rehearse::nccl
