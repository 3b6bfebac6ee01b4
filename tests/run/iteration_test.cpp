// Whole experiments, from names to the report.
#include "run/iteration.h"

#include <gtest/gtest.h>

#include "model/read.h"

namespace rehearse {
namespace {

Experiment llama_70b() {
  Experiment experiment;
  experiment.model = read_model("llama3-70b");
  experiment.cluster = read_cluster("dgx-h100");
  experiment.profile = read_profile("h100-sxm");
  Plan& plan = experiment.plan;
  plan.tp = 8;
  plan.pp = 4;
  plan.vpp = 5;
  plan.dp = 16;
  plan.global_batch = 256;
  plan.seq = 8192;
  plan.schedule = ScheduleName::interleaved;
  plan.sequence_parallel = plan.overlap_p2p = true;
  return experiment;
}

TEST(Iteration, TimeSharesSumToTheStep) {
  const Report report = run_iteration(llama_70b()).report;
  EXPECT_NEAR(report.time.sum(), report.step_time_s, 1e-9 * report.step_time_s);
  EXPECT_GT(report.mfu, 0.2);
  EXPECT_LT(report.mfu, 0.8);
}

TEST(Iteration, ContentionMakesASimulatedStepNoShorterThanTheLongestPath) {
  Experiment experiment = llama_70b();
  const double simulated = run_iteration(experiment).report.step_time_s;
  experiment.engine = Engine::reference;
  const double longest = run_iteration(experiment).report.step_time_s;
  EXPECT_GE(simulated, longest * (1 - 1e-9));
  EXPECT_LT(simulated, longest * 1.05);
}

TEST(Iteration, ASlowerNetworkMakesNoStepFaster) {
  Experiment experiment = llama_70b();
  experiment.engine = Engine::reference;
  const double fast = run_iteration(experiment).report.step_time_s;
  experiment.cluster.node.nic.bandwidth /= 10;
  EXPECT_GT(run_iteration(experiment).report.step_time_s, fast);
}

TEST(Iteration, InterleavingWinsAtFewMicrobatchesAndFadesWithMany) {
  const auto gain = [](std::int64_t global_batch) {
    Experiment experiment = llama_70b();
    experiment.engine = Engine::reference;
    experiment.plan.global_batch = global_batch;
    const double interleaved = run_iteration(experiment).report.step_time_s;
    experiment.plan.vpp = 1;
    experiment.plan.schedule = ScheduleName::one_f_one_b;
    return run_iteration(experiment).report.step_time_s / interleaved;
  };
  EXPECT_GT(gain(64), 1.2);
  EXPECT_GT(gain(64), gain(1024));
}

// Narayanan et al. 2021, section 3.2 and figure 13: all-reduces between nodes outweigh what a shorter
// pipeline saves.
TEST(Iteration, TensorParallelismBeyondTheNodeLoses) {
  Experiment within = llama_70b();
  within.engine = Engine::reference;
  within.plan.vpp = 1;
  within.plan.schedule = ScheduleName::one_f_one_b;
  within.plan.overlap_p2p = false;
  Experiment beyond = within;
  beyond.plan.tp = 16;
  beyond.plan.pp = 2;
  ASSERT_TRUE(broken_rules(beyond.plan, beyond.model, within.plan.gpus()).empty());
  const Report far = run_iteration(beyond).report, near = run_iteration(within).report;
  EXPECT_GT(far.step_time_s, near.step_time_s);
  EXPECT_GT(far.time.exposed_tp, 2 * near.time.exposed_tp);
  EXPECT_LT(far.bubble_mean, near.bubble_mean);  // the shorter pipeline does not make up for it
}

TEST(Iteration, RecomputeTradesTimeForMemory) {
  Experiment experiment = llama_70b();
  experiment.engine = Engine::reference;
  const Report none = run_iteration(experiment).report;
  experiment.plan.recompute = Recompute::selective;
  const Report selective = run_iteration(experiment).report;
  experiment.plan.recompute = Recompute::full;
  experiment.plan.recompute_method = RecomputeMethod::block;
  experiment.plan.recompute_layers = 2;
  const Report half = run_iteration(experiment).report;
  experiment.plan.recompute_method = RecomputeMethod::uniform;
  experiment.plan.recompute_layers = 1;
  const Report full = run_iteration(experiment).report;
  EXPECT_LT(none.step_time_s, selective.step_time_s);
  EXPECT_LT(none.step_time_s, half.step_time_s);
  EXPECT_LT(half.step_time_s, full.step_time_s);
  EXPECT_GT(heaviest_rank(none).peak_bytes, heaviest_rank(selective).peak_bytes);
  EXPECT_GT(heaviest_rank(none).peak_bytes, heaviest_rank(half).peak_bytes);
  EXPECT_GT(heaviest_rank(half).peak_bytes, heaviest_rank(full).peak_bytes);
  EXPECT_GT(full.hfu - full.mfu, none.hfu - none.mfu);
}

}  // namespace
}  // namespace rehearse
