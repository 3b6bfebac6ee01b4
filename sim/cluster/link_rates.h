// How fast is a GPU's link, given the GPU's generation?
#pragma once

#include <string>

#include "cluster/cluster.h"

namespace rehearse {

// Bytes/s of one link each way. NVLink 1 to 5 by compute capability in NCCL's notation (NVIDIA's data sheets
// of P100, V100, A40, A100, H100 and B200). Infinity Fabric by architecture ("gfx942", or "910" for gfx90a in
// older dumps; AMD's data sheets of MI50, MI100, MI250X, MI300X and MI350X). 0 for an unknown architecture.
double nvlink_rate(int sm);
double xgmi_rate(const std::string& architecture);

// Bytes/s of the x16 slot of a GPU of this compute capability (the same data sheets).
double pcie_rate(int sm);

// Compute capability in NCCL's notation; 0: not NVIDIA's, or unknown.
int compute_capability_of(const Cluster& cluster);

}  // namespace rehearse
