// What does a machine say of its own topology? Files of NCCL and nvidia-smi, read as a cluster of one node.
#pragma once

#include <string>

#include "cluster/cluster.h"

namespace rehearse {

// Does the path name such a file (ending ".xml" or ".txt") rather than a cluster?
bool is_topology_dump(const std::string& path);

// ".xml": what NCCL writes to NCCL_TOPO_DUMP_FILE; else the text of `nvidia-smi topo -m`. Wiring, NICs and
// which of them each GPU uses; the GPU's peaks and memory and all latencies are not told and stay 0.
// InputError when the file is broken, names no GPU, or exceeds 16 MB or 1024 GPUs.
Cluster import_topology(const std::string& path);

// The two formats by themselves; `file` is named in errors.
// PCIe: width times lane rate (NCCL graph/topo.cc); NVLink: the wire rate of the GPU's generation; between
// CPUs what NCCL takes for them (graph/topo.h).
Cluster import_nccl(const std::string& xml, const std::string& file);

// The matrix tells kinds and link counts, no rates: NVLinks are taken as 25 GB/s each way (NVLink 2 to 4),
// PCIe as 4.0 x16, CPUs as joined at 16 GB/s; the cluster's source says so.
Cluster import_smi(const std::string& text, const std::string& file);

// A cluster JSON of the imported node, everything else as the cluster `like`.
std::string write_imported(const Cluster& imported, const std::string& like);

// For both: which NIC each GPU uses, the nearest of them and of equally near ones the least used.
std::vector<int> nearest_nics(const Node& node);

// For both: gpu_link from what the wiring gives each GPU.
void sum_gpu_links(Node& node);

}  // namespace rehearse
