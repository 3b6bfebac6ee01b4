// The cluster as a SimGrid platform, for users who continue with SimGrid themselves.
#pragma once

#include <cstdint>
#include <ostream>

#include "cluster/cluster.h"

namespace rehearse {

// XML of version 4.1 (DTD simgrid.dtd): one zone with Dijkstra routing. GPUs are hosts named "node0.gpu3",
// switches and NICs routers, every link split duplex. Half of the GPU link's latency is at each GPU, half of
// the NIC's at each NIC. InputError as make_graph().
void write_simgrid(std::ostream& out, const Cluster& cluster, std::int64_t nodes);

}  // namespace rehearse
