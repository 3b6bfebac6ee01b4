// The hardware: GPUs, nodes, links, NICs and the fabric, with bandwidth and latency. Kernel times are in
// profiles.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/fabric.h"
#include "cluster/nccl_facts.h"
#include "cluster/nic_limits.h"
#include "cluster/wiring.h"

namespace rehearse {

struct Gpu {
  std::string name;
  double memory_bytes = 0;
  double memory_bandwidth = 0;  // bytes/s
  // Dense, by precision: "bf16", "fp16", "fp8", "fp4", "tf32", "fp32".
  std::map<std::string, double> peak_flops;
  int multiprocessors = 0;        // 0: not on record
  double compute_capability = 0;  // NVIDIA's, such as 9.0; 0: not on record
};

// Whether its GEMMs take fp8 operands, scaled by tensor, stored by rows or by columns (Transformer Engine,
// common/transformer_engine.cpp, nvte_is_non_tn_fp8_gemm_supported).
inline bool takes_either_fp8_layout(const Gpu& gpu) {
  return (gpu.compute_capability >= 10 && gpu.compute_capability < 12) || gpu.compute_capability >= 13;
}

// A full-duplex attachment point: `bandwidth` bytes/s in each direction concurrently.
struct Port {
  double bandwidth = 0;  // payload rate of the wire after encoding; bytes/s
  double latency = 0;    // seconds from one end of the path to the other
};

// Destination of offloaded optimizer state and activations.
struct Host {
  Port link;                         // of one GPU, each direction; bandwidth 0: none on record
  double adam_parameters_per_s = 0;  // of all CPUs of the node together
};

struct Node {
  int gpus = 0;
  Port gpu_link;                 // link of each GPU to the others of its node (NVLink, PCIe, memory)
  std::string gpu_link_kind;     // "nvswitch", "nvlink-mesh" (links of a GPU summed), "pcie", "shared-memory"
  int nics = 0;                  // 0: the node is not networked
  Port nic;                      // each of them
  std::string nic_kind;          // "infiniband", "roce", "efa", ...
  NicLimits nic_limits;          // payload limits relative to the line rate
  std::vector<int> nic_of_gpu;   // the NIC that each GPU sends through; empty: spread evenly, in order
  std::vector<NodeLink> wiring;  // links of GPUs, switches and NICs; empty: one switch
  Host host;
};

struct Cluster {
  std::string name;
  std::string source;  // where these figures were published
  Gpu gpu;
  Node node;
  int max_nodes = 0;    // maximum number of nodes; 0: no limit
  Fabric fabric;        // between the nodes
  std::string profile;  // name of the calibration profile that fits these GPUs
  NcclFacts nccl;

  int nic_of(int local_gpu) const {
    if (!node.nic_of_gpu.empty()) return node.nic_of_gpu[static_cast<std::size_t>(local_gpu)];
    return static_cast<int>(std::int64_t{local_gpu} * node.nics / node.gpus);
  }
};

// JSON of schema "rehearse.cluster/1": keys as in the structs above, quantities as text with units. "like"
// names another cluster whose keys are the defaults. `name_or_path` is a built-in topology or the path of a
// cluster JSON. InputError when it is neither or breaks a rule: every bandwidth positive, gpus >= 1, NICs
// needed when max_nodes is not 1, a wiring that joins all GPUs, levels of the fabric that grow.
Cluster read_cluster(const std::string& name_or_path);

std::vector<std::string> cluster_names();

}  // namespace rehearse
