// Do all groups of a kind lie alike in nodes and on NICs?
#pragma once

#include "cluster/cluster.h"
#include "plan/plan.h"

namespace rehearse {

// Whether every block of neighbouring ranks that a group of `plan` is made of fills a node (and the GPUs of a
// NIC, and those joined by bridges) or an even part of it, ranks placed on GPUs in order.
bool lies_evenly(const Plan& plan, const Cluster& cluster);

// Neighbours that share a NIC, all of a node where it has none; 0 where NICs are not shared out evenly.
int gpus_of_a_nic(const Cluster& cluster);

}  // namespace rehearse
