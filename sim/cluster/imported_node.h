// How is a node completed of which a dump tells a part?
#pragma once

#include "cluster/import.h"

namespace rehearse {

// Which NIC each GPU uses, the nearest of them and of equally near ones the least used.
std::vector<int> nearest_nics(const Node& node);

// gpu_link from what the wiring gives each GPU. GPUs that most others of an NVSwitch node have lost, or that
// are joined in pairs alone, are named in the notes.
void sum_gpu_links(ImportedNode& imported);

// Everything that the dump does not tell, from `like`.
void complete(ImportedNode& imported, const Cluster& like);

}  // namespace rehearse
