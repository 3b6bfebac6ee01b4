// Small experiments and loads that the tests of running share.
#pragma once

#include <vector>

#include "model/read.h"
#include "run/iteration.h"
#include "run/loads.h"
#include "schedule/orders.h"
#include "schedule/passes.h"

namespace rehearse {

inline Plan pipeline_plan(int pp, int vpp, int microbatches) {
  Plan plan;
  plan.pp = pp;
  plan.vpp = vpp;
  plan.global_batch = microbatches;
  plan.schedule = vpp > 1 ? ScheduleName::interleaved : ScheduleName::one_f_one_b;
  plan.overlap_p2p = true;
  return plan;
}

// GPUs of DGX A100 that hold each a replica of a model, one sequence a rank.
inline Experiment replicas(const std::string& model, int dp) {
  Experiment experiment;
  experiment.model = read_model(model);
  experiment.cluster = read_cluster("dgx-a100-80gb");
  experiment.profile = read_profile("a100-sxm-80gb");
  experiment.engine = Engine::reference;
  Plan& plan = experiment.plan;
  plan.dp = dp;
  plan.global_batch = dp;
  plan.seq = 1024;
  plan.grad_reduce = Precision::bf16;  // so that every element on the wire has two bytes
  return experiment;
}

// Loads without flows: seconds for each kind of op.
template <typename Seconds>
Loads fixed_loads(const Schedule& schedule, const Tasks& tasks, Seconds&& seconds) {
  Loads loads;
  loads.transfer_s.assign(tasks.size(), 0);
  loads.taken.assign(tasks.size(), 0);
  loads.first_flow.assign(tasks.size() + 1, 0);
  for (TaskId task = 0; task < tasks.size(); ++task) {
    const OpRef leader = tasks.leader[task];
    const int rank = tasks.instances[static_cast<std::size_t>(leader.instance)].pipeline_rank;
    loads.fixed_s.push_back(
        seconds(schedule.ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(leader.op)]));
  }
  return loads;
}

inline Profile flat_profile() {
  Profile profile;
  profile.name = "flat";
  profile.gpu.name = "test";
  profile.links = {{"test-link", "ring", 1e-6, 0, 1, How::measured},
                   {"test-link", "send", 1e-6, 0, 1, How::measured},
                   {"test-nic", "ring", 5e-6, 0, 1, How::measured},
                   {"test-nic", "send", 5e-6, 0, 1, How::measured}};
  return profile;
}

// Nodes of `gpus` GPUs with `nics` NICs of 10 GB/s and GPU links of 100 GB/s.
inline Cluster small_cluster(int gpus, int nics) {
  Cluster cluster;
  cluster.name = "small";
  cluster.gpu.name = "test";
  cluster.node.gpus = gpus;
  cluster.node.gpu_link = {100e9, 1e-6};
  cluster.node.gpu_link_kind = "test-link";
  cluster.node.nics = nics;
  cluster.node.nic = {10e9, 5e-6};
  cluster.node.nic_kind = "test-nic";
  return cluster;
}

inline OpTimes even_times(const Plan& plan, double forward_s) {
  OpTimes times;
  StageTimes stage;
  stage.forward.compute = stage.backward_input.compute = stage.backward_weight.compute = forward_s / plan.vpp;
  times.stages.assign(static_cast<std::size_t>(plan.stages()), stage);
  times.step.assign(static_cast<std::size_t>(plan.pp), TimeParts{});
  return times;
}

}  // namespace rehearse
