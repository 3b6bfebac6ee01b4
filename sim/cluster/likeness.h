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

enum class Part : std::uint8_t { gpu, node, gpu_links, nics, fabric };
constexpr std::size_t kParts = 5;

// Two clusters are kin where GPUs, links and NICs are of the same kinds. Figures and layouts may differ.
struct Likeness {
  bool kin = false;
  double distance = 0;                 // sum of |log| of the ratios of all figures, 1 a layout; 0: equal
  std::array<bool, kParts> differs{};  // by Part
  bool same() const { return kin && distance == 0; }
};

// Within a node it compares the GPU (by its name or, where that differs, by all its figures), the number of
// GPUs in a node, and their links. Across nodes it adds NICs, counted for each GPU, and fabric. Layouts are
// the number of GPUs on a switch, which GPU sends through which NIC, and the fabric's levels. A mesh of
// another number of GPUs has other links: that is another kind. A cluster whose measurements apply to no
// other (NcclFacts) is kin only to one with the same flag. Not compared: memory, host, size of the cluster,
// profile.
Likeness likeness(const Cluster& known, const Cluster& asked, Reach reach);

std::string differing_parts(const Likeness& likeness);  // "NICs and fabric"; empty: none

}  // namespace rehearse
