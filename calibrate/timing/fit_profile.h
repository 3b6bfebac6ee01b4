// Which costs follow from what a profile's measurement holds of messages and copies?
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

// Sets the costs of the links that `profile.measurement` tells of (fit_links.h), and what its GPUs differ by
// where four or more were timed at once; the others stay. `by_nccl`: NCCL ran the messages, so that they also
// become what was measured of it on `cluster`. What is doubtful about it is added to `notes`.
void fit_measured(Profile& profile, const Cluster& cluster, bool by_nccl, std::vector<std::string>& notes);

}  // namespace rehearse
