// Do all groups of a kind have the same layout in nodes and on NICs?
#pragma once

#include "cluster/cluster.h"
#include "plan/plan.h"

namespace rehearse {

// True if every block of neighbouring ranks in a group of `plan` fills a node or an even part of it. The same
// must hold for the GPUs of a NIC, and for GPUs joined by bridges. Ranks are placed on GPUs in order.
bool lies_evenly(const Plan& plan, const Cluster& cluster);

// The number of neighbours that share a NIC. All GPUs of a node without NICs; 0 where NICs are shared
// unevenly.
int gpus_of_a_nic(const Cluster& cluster);

}  // namespace rehearse
