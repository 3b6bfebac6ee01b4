#include "machines.h"

namespace rehearse::test {

namespace {

Cluster dgx(const Gpu& gpu, double gpu_link, double nic) {
  Cluster cluster;
  cluster.name = gpu.name;
  cluster.gpu = gpu;
  cluster.node.gpus = 8;
  cluster.node.gpu_link = {gpu_link, 3e-6};
  cluster.node.gpu_link_kind = "nvswitch";
  cluster.node.nics = 8;
  cluster.node.nic = {nic, 3e-6};
  cluster.node.nic_kind = "infiniband";
  return cluster;
}

}  // namespace

Cluster dgx_a100() {
  return dgx({"A100-SXM4-80GB", 80e9, 2.04e12, {{"fp16", 312e12}, {"bf16", 312e12}}, 0}, 300e9, 25e9);
}

Cluster dgx_h100() {
  return dgx({"H100-SXM5-80GB", 80e9, 3.35e12, {{"fp16", 989e12}, {"bf16", 989e12}, {"fp8", 1979e12}}, 0},
             450e9, 50e9);
}

Profile round_numbers() {
  Profile profile;
  profile.name = "round numbers";
  profile.links = {{"nvswitch", "ring", 10e-6, 1e-6, 0.5, How::published},
                   {"nvswitch", "send", 5e-6, 0, 0.8, How::published},
                   {"infiniband", "ring", 20e-6, 4e-6, 0.9, How::published},
                   {"infiniband", "send", 15e-6, 0, 0.96, How::published}};
  return profile;
}

std::vector<int> ranks_on(const Cluster& cluster, int nodes, int members_of_a_node) {
  std::vector<int> ranks;
  for (int node = 0; node < nodes; ++node) {
    for (int gpu = 0; gpu < members_of_a_node; ++gpu) ranks.push_back(node * cluster.node.gpus + gpu);
  }
  return ranks;
}

}  // namespace rehearse::test
