// Do all ranks of a pipeline stage fare alike, so that one may be simulated for all?
#pragma once

#include "cluster/cluster.h"
#include "plan/plan.h"
#include "run/conditions.h"

namespace rehearse {

// Whether groups lie evenly, no link is slow, nothing is drawn at random, and no two ranks meet on a link of
// the fabric or on a wire of a node. Slow ranks with NICs of their own may differ: their replicas are walked
// by themselves (replicas_to_walk). Where it says no, one rank may still stand for all, but that is not
// known.
bool are_symmetric(const Plan& plan, const Cluster& cluster, const Conditions& conditions);

}  // namespace rehearse
