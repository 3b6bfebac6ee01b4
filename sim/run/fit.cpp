#include "run/fit.h"

#include "memory/memory.h"
#include "run/long_step.h"
#include "run/outside_allocator.h"

namespace rehearse {

namespace {

double workspace_of(const Cluster& cluster) {
  return gemm_workspace_bytes(cluster.gpu.peak_flops.contains("fp8"));
}

double workspace_of(const Experiment& experiment) {
  double workspace = experiment.stage_nodes.empty() ? workspace_of(experiment.cluster) : 0;
  for (const NodeKind& kind : experiment.stage_nodes.kinds)
    workspace = std::max(workspace, workspace_of(kind.cluster));
  return workspace;
}

// Copies to the host are ops of the full schedule only.
std::vector<RankMemory> memory_of(const Experiment& experiment, const Work& work) {
  const Plan& plan = experiment.plan;
  const auto in = [&](const Schedule& schedule) {
    return rank_memory(schedule, plan, work, workspace_of(experiment));
  };
  if (plan.offload == Offload::activations)
    return in(complete_order(
        experiment.order ? experiment : with_microbatches(experiment, shortened(plan).microbatches())));
  return experiment.order ? in(*experiment.order) : order_memory(plan, work, workspace_of(experiment));
}

}  // namespace

std::vector<Footprint> footprints_of(const Experiment& experiment) {
  const Work work = make_work(experiment.model, experiment.plan);
  std::vector<Footprint> gpus =
      footprints(memory_of(experiment, work), outside_allocator(experiment, experiment.plan, work),
                 experiment.cluster.gpu.memory_bytes);
  const StageNodes& nodes = experiment.stage_nodes;
  if (nodes.empty()) return gpus;
  for (Footprint& gpu : gpus) gpu.capacity_bytes = nodes.of_rank(gpu.rank).cluster.gpu.memory_bytes;
  return gpus;
}

std::optional<FewestGpus> fewest_gpus_of(const Experiment& experiment, const Headroom& headroom, int like) {
  Experiment alike = experiment;  // whose pipeline ranks have equal nodes
  if (const StageNodes& nodes = experiment.stage_nodes; !nodes.empty()) {
    const NodeKind& kind = nodes.of_rank(like);
    alike.cluster = kind.cluster;
    alike.profile = kind.profile;
    alike.stage_nodes = {};
  }
  const Cluster& cluster = alike.cluster;
  const auto outside = [&](const Plan& plan, const Work& work) {
    return outside_allocator(alike, plan, work);
  };
  return fewest_gpus(experiment.model, experiment.plan,
                     {cluster.gpu.memory_bytes, workspace_of(experiment), cluster.node.gpus,
                      std::int64_t{cluster.max_nodes} * cluster.node.gpus, outside, headroom});
}

}  // namespace rehearse
