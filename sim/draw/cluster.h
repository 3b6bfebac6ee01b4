// What does the cluster look like? A picture: the fabric above, the inside of one node below.
#pragma once

#include <cstdint>
#include <string>

#include "cluster/cluster.h"

namespace rehearse {

// A self-contained SVG with the same bytes on every run. Of more than 8 nodes or switches of a level, the
// first ones are drawn, with the total number beside them.
std::string draw_cluster(const Cluster& cluster, std::int64_t nodes);

}  // namespace rehearse
