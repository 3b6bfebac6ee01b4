// Which costs follow from a profile's measurements of messages and copies?
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

// Sets the costs of the links in `profile.measurement` (fit_links.h), and the spread of GPUs where four or
// more were timed at once. Other costs stay. `by_nccl`: NCCL ran the messages, so they also become measured
// collectives on `cluster`. Doubtful points are added to `notes`.
void fit_measured(Profile& profile, const Cluster& cluster, bool by_nccl, std::vector<std::string>& notes);

}  // namespace rehearse
