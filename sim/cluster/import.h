// How does a machine describe its topology? Files of NCCL and nvidia-smi, read as a cluster of one node.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace rehearse {

// Whether the path names such a file (ending ".xml" or ".txt", or a stream that is not JSON) rather than a
// cluster.
bool is_topology_dump(const std::string& path);

struct ImportedNode {
  Cluster cluster;
  bool tells_gpu_links = true;  // NVLink or Infinity Fabric, or their absence
  bool tells_nic_rate = false;
  bool part_of_domain = false;     // one host of the NVLink domain of the cluster that it is like
  std::vector<std::string> notes;  // assumptions, missing and omitted parts
};

// ".xml": NCCL's file of NCCL_TOPO_DUMP_FILE; else the text of `nvidia-smi topo -m`. Reads wiring, NICs, and
// the NICs of each GPU. The GPU, latencies, the fabric and other data absent from a dump come from `like`;
// without it they stay 0. InputError when the file is broken, names no GPU, or exceeds 16 MB or 1024 GPUs.
ImportedNode import_topology(const std::string& path, const Cluster* like = nullptr);

// The two formats by themselves; errors name `file`. Link rates:
// - PCIe: width times lane rate; where a file leaves them empty, NCCL's defaults, 3.0 and 16 lanes (NCCL
//   graph/topo.cc);
// - NVLink: the wire rate of the GPU's generation;
// - Infinity Fabric: the data sheet's;
// - between CPUs: NCCL's values (graph/topo.h).
// Where the file has no elements for GPUs and NICs, PCI devices count as such by their class. Such files are
// completed by NCCL at run time (NCCL_TOPO_FILE of clouds).
ImportedNode import_nccl(const std::string& xml, const std::string& file);

// The matrix has kinds and link counts, but no rates. Rates of NVLink and PCIe follow from the GPU generation
// of `like`; without it they are 25 GB/s (NVLink 2 to 4) and 4.0 x16. Links between CPUs are assumed at 16
// GB/s.
ImportedNode import_smi(const std::string& text, const std::string& file, const Cluster* like = nullptr);

// A cluster JSON of the imported node; everything else refers to the cluster `like`, which completed it.
std::string write_imported(const ImportedNode& imported, const std::string& like_name, const Cluster& like);

}  // namespace rehearse
