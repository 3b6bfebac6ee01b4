// Which properties of a cluster, besides its links, does a collectives library need?
#pragma once

#include <string>
#include <vector>

namespace rehearse {

class JsonReader;

// The optional block "nccl" of a cluster's JSON.
struct NcclFacts {
  int sm = 0;                   // compute capability in NCCL's notation (80: 8.0); 0: not NVIDIA's
  int host_gpus = 0;            // GPUs of one host where a node (an NVLink domain) holds many; 0: all
  bool assumed_nics = false;    // the source does not describe them
  bool degraded = false;        // messages between nodes take longer than NICs and fabric explain
  std::vector<double> rings;    // of one link each, through the first 2, 3, ... GPUs; empty: a full mesh
  int island_gpus = 0;          // GPUs joined by bridges; 0: none
  double island_bandwidth = 0;  // bytes/s each way, of one GPU
  std::string island_kind;      // "nvlink-bridge"

  // Measurements between its nodes apply to no other cluster.
  bool is_its_own() const { return assumed_nics || degraded; }
};

// InputError for a key or value that breaks a rule; `gpus` of the node.
NcclFacts read_nccl_facts(const JsonReader& cluster, int gpus);

}  // namespace rehearse
