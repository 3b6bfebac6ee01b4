#include "cost/even.h"

#include <algorithm>
#include <array>
#include <vector>

#include "plan/sharding.h"

namespace rehearse {

namespace {

using Extents = std::array<int, 5>;  // by Axis

Extents dense_extents(const Plan& plan) {
  return {plan.tp, plan.cp, 1, plan.dp, plan.pp};
}

// For each axis, the number of neighbouring ranks that it spans together with the axes before it.
void add_blocks(const Plan& plan, const Extents& extents, std::vector<int>& blocks) {
  int block = 1;
  for (const Axis axis : plan.order) blocks.push_back(block *= extents[static_cast<std::size_t>(axis)]);
}

// The same number for a sharding group; 0 where groups do not divide an axis evenly.
int shard_block(const Plan& plan) {
  const Extents extents = dense_extents(plan);
  int block = 1, shard = shard_size(plan);
  for (const Axis axis : plan.order) {
    const int extent = extents[static_cast<std::size_t>(axis)];
    if (axis == Axis::cp || axis == Axis::dp) {
      if (shard <= extent) return extent % shard == 0 ? block * shard : 0;
      if (shard % extent != 0) return 0;
      shard /= extent;
    }
    block *= extent;
  }
  return block;
}

std::vector<int> blocks_of(const Plan& plan) {
  std::vector<int> blocks;
  add_blocks(plan, dense_extents(plan), blocks);
  if (plan.ep > 1 || plan.etp != plan.tp)
    add_blocks(plan, {plan.etp, 1, plan.ep, plan.edp(), plan.pp}, blocks);
  if (plan.zero > 0) blocks.push_back(shard_block(plan));
  return blocks;
}

}  // namespace

int gpus_of_a_nic(const Cluster& cluster) {
  const Node& node = cluster.node;
  if (node.nics == 0) return node.gpus;
  int run = 1;
  while (run < node.gpus && cluster.nic_of(run) == cluster.nic_of(0)) ++run;
  for (int gpu = 1; gpu < node.gpus; ++gpu) {
    const bool begins = gpu % run == 0, changes = cluster.nic_of(gpu) != cluster.nic_of(gpu - 1);
    if (begins != changes) return 0;
  }
  return node.gpus % run == 0 ? run : 0;
}

bool lies_evenly(const Plan& plan, const Cluster& cluster) {
  std::vector<int> sizes = {cluster.node.gpus, gpus_of_a_nic(cluster)};
  if (cluster.nccl.island_gpus > 0) sizes.push_back(cluster.nccl.island_gpus);
  const std::vector<int> blocks = blocks_of(plan);
  return std::all_of(blocks.begin(), blocks.end(), [&](int block) {
    return std::all_of(sizes.begin(), sizes.end(), [block](int size) {
      return block > 0 && size > 0 && (size % block == 0 || block % size == 0);
    });
  });
}

}  // namespace rehearse
