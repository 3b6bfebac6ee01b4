// Messages between GPUs of a cluster, all sent at once.
#pragma once

#include <algorithm>

#include "cases.h"
#include "in_child.h"
#include "run/link_table.h"
#include "run/simulate.h"

namespace rehearse {

struct Message {
  LinkTable::GpuPlace from, to;
  double bytes = 1e9;
};

// When each of them ends.
inline std::vector<double> ends_of(const Cluster& cluster, const std::vector<Message>& messages,
                                   const Conditions& conditions = {}) {
  Schedule schedule;
  schedule.pp = schedule.stages = static_cast<int>(messages.size());
  schedule.microbatches = 1;
  schedule.ranks.resize(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i)
    schedule.ranks[i].add(make_op(OpKind::forward, static_cast<int>(i)), {});
  const Tasks tasks = derive_tasks(schedule, pipeline_plan(schedule.pp, 1, 1));
  LinkTable table(cluster, conditions);
  Loads loads;
  loads.first_flow = {0};
  for (const Message& message : messages) {
    loads.flows.push_back(
        {table.message(message.from, message.to), static_cast<std::uint64_t>(message.bytes)});
    loads.first_flow.push_back(static_cast<std::uint32_t>(loads.flows.size()));
  }
  loads.fixed_s.assign(messages.size(), 0);
  loads.transfer_s.assign(messages.size(), 0);
  loads.capacity = table.capacity();
  loads.ends = table.ends();
  const auto ends = in_child([&] {
    std::vector<double> each;
    for (const TimelineRank& rank : simulate(schedule, tasks, loads).ranks) each.push_back(rank.spans[0].end);
    return each;
  });
  return ends.value_or(std::vector<double>{-1});
}

inline double last_end(const Cluster& cluster, const std::vector<Message>& messages,
                       const Conditions& conditions = {}) {
  const std::vector<double> ends = ends_of(cluster, messages, conditions);
  return *std::max_element(ends.begin(), ends.end());
}

// Nodes of `gpus` GPUs with `nics` NICs of 50 GB/s below leaf switches of `leaf` nodes.
inline Cluster leafy_cluster(int gpus, int nics, int leaf, double oversubscription, bool rails = false) {
  Cluster cluster = small_cluster(gpus, nics);
  cluster.node.nic.bandwidth = 50e9;
  cluster.node.gpu_link.bandwidth = 450e9;
  cluster.fabric.kind = FabricKind::fat_tree;
  cluster.fabric.levels = {{"leaf", leaf, oversubscription}};
  cluster.fabric.rails = rails;
  return cluster;
}

}  // namespace rehearse
