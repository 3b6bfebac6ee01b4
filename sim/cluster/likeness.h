// How alike are two clusters for the messages between their GPUs? By what their files say, whatever they are
// called.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "cluster/cluster.h"

namespace rehearse {

// Which messages: within a node, or across nodes.
enum class Reach : std::uint8_t { node, cluster };

enum class Part : std::uint8_t { gpu, gpu_links, nics, fabric };
constexpr std::size_t kParts = 4;

// Two clusters are kin where GPUs, links, NICs and fabric are of the same kinds; their figures may differ.
struct Likeness {
  bool kin = false;
  double distance = 0;                 // sum of |log| of the ratios of all figures; 0: equal
  std::array<bool, kParts> differs{};  // by Part
  bool same() const { return kin && distance == 0; }
};

// Within a node: the GPU by its name or, where that differs, by all its figures; how many share a node; and
// what joins them. Across nodes NICs, counted for each GPU, and fabric too; a cluster whose messages tell of
// no other (NcclFacts) is kin to one that says the same of itself. Not compared: memory, host, size of the
// cluster, profile.
Likeness likeness(const Cluster& known, const Cluster& asked, Reach reach);

// Equally many GPUs share a node. Where NVLink joins many hosts, of which a job may take a part
// (cluster/share.h), as many share a host.
bool nodes_are_as_large(const Cluster& a, const Cluster& b);

std::string differing_parts(const Likeness& likeness);  // "NICs and fabric"; empty: none

}  // namespace rehearse
