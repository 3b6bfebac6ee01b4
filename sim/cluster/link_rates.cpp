#include "cluster/link_rates.h"

namespace rehearse {

double nvlink_rate(int sm) {
  if (sm >= 100) return 50e9;
  if (sm == 86) return 14.0625e9;
  return sm >= 70 ? 25e9 : 20e9;
}

double xgmi_rate(const std::string& architecture) {
  const std::string number = architecture.starts_with("gfx") ? architecture.substr(3) : architecture;
  if (number.starts_with("95")) return 76.8e9;
  if (number.starts_with("94")) return 64e9;
  if (number.starts_with("90a") || number == "910") return 50e9;
  return number.starts_with("90") ? 46e9 : 0;
}

double pcie_rate(int sm) {
  if (sm >= 90) return 63e9;
  return sm >= 80 || sm == 0 ? 31.5e9 : 15.75e9;
}

int compute_capability_of(const Cluster& cluster) {
  if (cluster.nccl.sm > 0) return cluster.nccl.sm;
  return static_cast<int>(cluster.gpu.compute_capability * 10 + 0.5);
}

}  // namespace rehearse
