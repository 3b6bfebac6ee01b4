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

}  // namespace
}  // namespace rehearse
