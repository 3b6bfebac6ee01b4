// How much longer than on links of their own do the collectives inside ops take on a fabric that blocks?
#pragma once

#include "cluster/cluster.h"
#include "cost/price.h"
#include "plan/plan.h"
#include "run/conditions.h"

namespace rehearse {

// Tensor-, context- and expert-parallel collectives are priced as parts of ops, and all groups of an axis
// talk at once: the stretch is what the fullest shared link of the fabric then takes, over what the fullest
// NIC takes; 1 where groups keep to a node or no link is shared. All-to-all: every pair of a group; else a
// ring through the nodes of the group. Messages of other axes and streams do not add to it, and NICs count as
// bandwidth says, slow or not.
Stretch find_stretch(const Plan& plan, const Cluster& cluster, const Conditions& conditions);

}  // namespace rehearse
