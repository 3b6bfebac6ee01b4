// How is a node completed when a dump describes only a part of it?
#pragma once

#include "cluster/import.h"

namespace rehearse {

// The NIC that each GPU uses: the nearest one, and of equally near ones the least used.
std::vector<int> nearest_nics(const Node& node);

// Sets gpu_link from the wiring's total for each GPU. The notes name GPUs of an NVSwitch node that lack links
// of most others, and GPUs that are connected only in pairs.
void sum_gpu_links(ImportedNode& imported);

// Takes everything that the dump lacks from `like`.
void complete(ImportedNode& imported, const Cluster& like);

}  // namespace rehearse
