// Do all ranks of a pipeline stage behave the same, so that one may be simulated for all?
#pragma once

#include "cluster/cluster.h"
#include "plan/plan.h"
#include "run/conditions.h"

namespace rehearse {

// True if groups have even layouts, no link is slow, nothing is random, and no two ranks meet on a fabric
// link or on a wire of a node. Slow ranks with NICs of their own may differ: their replicas are simulated
// separately (replicas_to_walk). If this is false, one rank may still stand for all, but that is not known.
bool are_symmetric(const Plan& plan, const Cluster& cluster, const Conditions& conditions);

}  // namespace rehearse
