// What does a machine say of its own topology? Files of NCCL and nvidia-smi, read as a cluster of one node.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace rehearse {

// Does the path name such a file (ending ".xml" or ".txt", or a stream of no JSON) rather than a cluster?
bool is_topology_dump(const std::string& path);

struct ImportedNode {
  Cluster cluster;
  bool tells_gpu_links = true;  // NVLink or Infinity Fabric, or that there is none
  bool tells_nic_rate = false;
  bool part_of_domain = false;     // one host of the NVLink domain of the cluster that it is like
  std::vector<std::string> notes;  // what was assumed, is missing or is left out
};

// ".xml": what NCCL writes to NCCL_TOPO_DUMP_FILE; else the text of `nvidia-smi topo -m`. Wiring, NICs and
// which of them each GPU uses. The GPU, latencies, the fabric and what else a dump does not tell come from
// `like`; without it they stay 0. InputError when the file is broken, names no GPU, or exceeds 16 MB or 1024
// GPUs.
ImportedNode import_topology(const std::string& path, const Cluster* like = nullptr);

// The two formats by themselves; `file` is named in errors.
// PCIe: width times lane rate, and where a file leaves them empty NCCL's defaults, 3.0 and 16 lanes (NCCL
// graph/topo.cc); NVLink: the wire rate of the GPU's generation; Infinity Fabric: of the data sheet; between
// CPUs what NCCL takes for them (graph/topo.h). PCI devices stand for GPUs and NICs by their class where the
// file has no elements for them, as files do that NCCL completes when it runs (NCCL_TOPO_FILE of clouds).
ImportedNode import_nccl(const std::string& xml, const std::string& file);

// The matrix tells kinds and link counts, no rates. Those of NVLink and PCIe follow from the generation of
// the GPU of `like`; without it they are 25 GB/s (NVLink 2 to 4) and 4.0 x16. CPUs are taken as joined at 16
// GB/s.
ImportedNode import_smi(const std::string& text, const std::string& file, const Cluster* like = nullptr);

// A cluster JSON of the imported node, everything else as the cluster `like`, by which it was completed.
std::string write_imported(const ImportedNode& imported, const std::string& like_name, const Cluster& like);

}  // namespace rehearse
