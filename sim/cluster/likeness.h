// How similar are two clusters for the messages between their GPUs? Compared by the contents of their files,
// not by name.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "cluster/cluster.h"

namespace rehearse {

// The compared messages: within a node, or across nodes.
enum class Reach : std::uint8_t { node, cluster };

enum class Part : std::uint8_t { gpu, gpu_links, nics, fabric };
constexpr std::size_t kParts = 4;

// Two clusters are kin where GPUs, links, NICs and fabric are of the same kinds; figures may differ.
struct Likeness {
  bool kin = false;
  double distance = 0;                 // sum of |log| of the ratios of all figures; 0: equal
  std::array<bool, kParts> differs{};  // by Part
  bool same() const { return kin && distance == 0; }
};

// Within a node it compares the GPU (by its name or, where that differs, by all its figures), the number of
// GPUs in a node, and their links. Across nodes it adds NICs, counted for each GPU, and fabric. A cluster
// whose measurements apply to no other (NcclFacts) is kin only to one with the same flag. Not compared:
// memory, host, size of the cluster, profile.
Likeness likeness(const Cluster& known, const Cluster& asked, Reach reach);

// Whether equally many GPUs share a node. Where NVLink joins many hosts, of which a job may take a part
// (cluster/share.h), it compares GPUs a host.
bool nodes_are_as_large(const Cluster& a, const Cluster& b);

std::string differing_parts(const Likeness& likeness);  // "NICs and fabric"; empty: none

}  // namespace rehearse
