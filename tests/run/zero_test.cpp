// Messages, memory and cost of data parallelism, compared with the closed forms of the papers.
#include <gtest/gtest.h>

#include <map>

#include "cases.h"
#include "memory/memory.h"
#include "model/read.h"
#include "plan/frameworks/traits.h"
#include "plan/sharding.h"
#include "plan/units.h"
#include "run/iteration.h"

namespace rehearse {
namespace {

// Elements that one rank sends for data parallelism: 2 (n-1)/n of an all-reduce's buffer, (n-1)/n of others'.
double elements_sent(const Report& report) {
  double bytes = 0;
  for (const CommunicationLine& line : report.communication) {
    if (line.kind != "dp") continue;
    const double n = line.group_size;
    bytes += line.bytes_per_rank * (line.op == "all_reduce" ? 2 : 1) * (n - 1) / n;
  }
  return bytes / 2;
}

// Rajbhandari et al. 2020, section 7: psi parameters, n ranks; the paper takes n for infinite.
TEST(ZeroVolume, IsTwoPsiUpToStage2AndThreePsiAtStage3) {
  for (const int n : {2, 8, 64}) {
    for (int zero = 0; zero <= 3; ++zero) {
      Experiment experiment = replicas("gpt2", n);
      experiment.plan.zero = zero;
      const Iteration run = run_iteration(experiment);
      const double psi = run.preparation.work.parameters(0);
      EXPECT_NEAR(elements_sent(run.report), (zero == 3 ? 3 : 2) * psi * (n - 1) / n, 1e-9 * psi)
          << "zero " << zero << " on " << n;
    }
  }
}

TEST(ZeroVolume, AccumulationRepeatsWhatCannotBeKept) {
  const int n = 8, microbatches = 4;
  const auto sent = [&](int zero, bool reshards) {
    Experiment experiment = replicas("gpt2", n);
    experiment.plan.global_batch = n * microbatches;
    experiment.plan.zero = zero;
    experiment.plan.reshard_after_forward = reshards;
    const Iteration run = run_iteration(experiment);
    return elements_sent(run.report) / run.preparation.work.parameters(0) * n / (n - 1);
  };
  EXPECT_NEAR(sent(1, true), 2, 1e-9);
  EXPECT_NEAR(sent(2, true), 1 + microbatches, 1e-9);
  EXPECT_NEAR(sent(3, false), 2 * microbatches, 1e-9);
  EXPECT_NEAR(sent(3, true), 3 * microbatches, 1e-9);
}

// Zhao et al. 2023, section 3.2.2: gathers and scatters within the group, 1/shard summed across.
TEST(ZeroVolume, HybridShardingSumsShardsAcrossGroups) {
  Experiment experiment = replicas("gpt2", 32);
  experiment.plan.zero = 3;
  experiment.plan.zero_shard = 8;
  const Iteration run = run_iteration(experiment);
  const double psi = run.preparation.work.parameters(0);
  EXPECT_NEAR(elements_sent(run.report), psi * (3 * 7 / 8.0 + 2 / 8.0 * 3 / 4.0), 1e-9 * psi);
}

// Rajbhandari et al. 2020, table 1: 7.5 billion parameters on 64 GPUs, and figure 1.
TEST(ZeroMemory, IsThatOfThePapersTable) {
  const double expected[] = {120, 31.4, 16.6, 1.88};
  for (int zero = 0; zero <= 3; ++zero) {
    Plan plan;
    plan.dp = 64;
    plan.zero = zero;
    plan.recipe = Recipe::zero;
    EXPECT_NEAR(held_state(7.5e9, 0, plan).total() / 1e9, expected[zero], 0.05) << zero;
  }
}

TEST(ZeroMemory, RecipesHold16And18And20Bytes) {
  const std::map<Recipe, double> bytes = {
      {Recipe::zero, 16}, {Recipe::megatron, 18}, {Recipe::sagemaker, 20}};
  for (const auto& [recipe, total] : bytes) {
    Plan plan;
    plan.recipe = recipe;
    EXPECT_EQ(held_state(1, 0, plan).total(), total);
  }
}

// DeepSpeed's BF16_Optimizer divides master weights and moments alone.
TEST(ZeroMemory, Bf16OptimizerKeepsBothGradientsWhole) {
  Plan plan;
  plan.recipe = Recipe::deepspeed_bf16;
  plan.dp = 4;
  plan.zero = 1;
  EXPECT_EQ(held_state(1, 0, plan).total(), 2 + 4 + 2 + 12.0 / 4);
}

// DistributedDataParallel's buckets hold the gradients once more; ZeRO-1 does without these buckets.
TEST(ZeroMemory, NanotronKeepsBothGradientsAndWithoutZeroTheBucketsWhole) {
  Plan plan;
  plan.recipe = Recipe::nanotron;
  EXPECT_EQ(held_state(1, 0, plan).total(), 2 + 4 + 2 + 12);
  plan.dp = 4;
  EXPECT_EQ(held_state(1, 0, plan).total(), 2 + 4 + 2 + 2 + 12);
  plan.zero = 1;
  EXPECT_EQ(held_state(1, 0, plan).total(), 2 + 4 + 2 + 12.0 / 4);
}

TEST(ZeroOne, OfNanotronAllReducesGradientsAfterTheBackwardPass) {
  Plan plan;
  plan.framework = Framework::nanotron;
  plan.dp = 4;
  apply_framework(plan);
  EXPECT_TRUE(plan.overlap_grad_reduce);
  plan.zero = 1;
  apply_framework(plan);
  EXPECT_FALSE(plan.overlap_grad_reduce);
  EXPECT_FALSE(scatters_gradients(plan));
  plan.framework = Framework::megatron_core;
  EXPECT_TRUE(scatters_gradients(plan));
}

// Ren et al. 2021, section 3: the GPU keeps the fp16 parameters alone.
TEST(ZeroMemory, OffloadLeavesTheParameters) {
  Plan plan;
  plan.zero = 2;
  plan.offload = Offload::optimizer;
  EXPECT_EQ(held_state(1, 0, plan).total(), 2);
}

TEST(ZeroMemory, UnitsAddUpToTheirStage) {
  Plan plan;
  plan.pp = 4;
  const Work work = make_work(read_model("llama3-8b"), plan);
  for (int stage = 0; stage < 4; ++stage) {
    const std::vector<Unit> parts = units(work, stage);
    double sum = 0;
    for (const Unit& unit : parts) sum += unit.total();
    EXPECT_EQ(parts.size(), 8U);
    EXPECT_DOUBLE_EQ(sum, work.parameters(stage));
  }
}

Experiment mixture(int dp, int ep) {
  Experiment experiment = replicas("mixtral-8x7b", dp);
  experiment.plan.ep = ep;
  experiment.plan.grad_reduce = Precision::fp32;
  return experiment;
}

// Dense layers are divided among dp x cp ranks, experts among the ranks that hold the same ones.
TEST(ZeroMemory, ExpertsAreDividedAmongTheirOwnReplicas) {
  Experiment experiment = mixture(32, 8);
  experiment.plan.zero = 1;
  const Report report = run_iteration(experiment).report;
  const double experts = 32.0 * 3 * 4096 * 14336;  // one of each layer's eight
  const double dense = report.memory[0].parameters - experts;
  EXPECT_DOUBLE_EQ(report.memory[0].expert_parameters, experts);
  EXPECT_DOUBLE_EQ(report.memory[0].optimizer_bytes, 12 * (dense / 32 + experts / 4));
}

TEST(ZeroMemory, ContextParallelRanksShareTheState) {
  Experiment experiment = replicas("llama3-8b", 4);
  experiment.plan.cp = 2;
  experiment.plan.seq = 4096;
  experiment.plan.zero = 3;
  const RankMemory memory = run_iteration(experiment).report.memory[0];
  EXPECT_DOUBLE_EQ(memory.parameters_bytes, 2 * memory.parameters / 8);
  EXPECT_DOUBLE_EQ(memory.optimizer_bytes, 12 * memory.parameters / 8);
}

TEST(Zero, BesideExpertsAndContextFoldedRunsEqualUnfoldedOnes) {
  for (const int zero : {1, 2, 3}) {
    Experiment experts = mixture(16, 4), context = replicas("llama3-8b", 4);
    context.plan.cp = 2;
    context.plan.seq = 4096;
    for (Experiment* experiment : {&experts, &context}) {
      experiment->plan.zero = zero;
      const double folded = run_iteration(*experiment).report.step_time_s;
      experiment->fold = Fold::none;
      EXPECT_NEAR(run_iteration(*experiment).report.step_time_s, folded, 1e-8 * folded) << zero;
    }
  }
}

// The times are equal except for each message's last byte, because bytes on the wire are whole.
TEST(Zero, FoldedRunsEqualUnfoldedOnes) {
  for (const int shard : {0, 8}) {
    for (const int zero : {1, 2, 3}) {
      Experiment experiment = replicas("gpt2", 16);
      experiment.plan.zero = zero;
      experiment.plan.zero_shard = shard;
      experiment.plan.global_batch = 32;
      const double folded = run_iteration(experiment).report.step_time_s;
      experiment.fold = Fold::none;
      EXPECT_NEAR(run_iteration(experiment).report.step_time_s, folded, 1e-8 * folded)
          << zero << " " << shard;
    }
  }
}

TEST(Zero, SharesSumToTheStepWithEveryOffload) {
  for (const Offload offload : {Offload::none, Offload::optimizer, Offload::activations}) {
    Experiment experiment = replicas("llama2-7b", 4);
    experiment.plan.pp = 2;
    experiment.plan.global_batch = 32;
    experiment.plan.zero = 1;
    experiment.plan.offload = offload;
    const Report report = run_iteration(experiment).report;
    EXPECT_NEAR(report.time.sum(), report.step_time_s, 1e-9 * report.step_time_s);
  }
}

TEST(Zero, ShardingTheOptimizerShortensItsStep) {
  Experiment experiment = replicas("llama2-7b", 8);
  const double whole = run_iteration(experiment).report.time.optimizer;
  experiment.plan.zero = 1;
  EXPECT_NEAR(run_iteration(experiment).report.time.optimizer, whole / 8, 0.05 * whole);
}

TEST(Zero, GatheringBesideTheNextForwardHidesTheGather) {
  Experiment experiment = replicas("llama2-7b", 32);
  experiment.plan.zero = 1;
  const Report after = run_iteration(experiment).report;
  experiment.plan.overlap_param_gather = true;
  const Report beside = run_iteration(experiment).report;
  EXPECT_LT(beside.step_time_s, after.step_time_s);
  EXPECT_LT(beside.time.exposed_dp, after.time.exposed_dp);
}

TEST(Zero, PrefetchHidesGathers) {
  Experiment experiment = replicas("llama2-7b", 32);
  experiment.plan.zero = 3;
  experiment.plan.prefetch = 0;
  const double without = run_iteration(experiment).report.step_time_s;
  experiment.plan.prefetch = 1;
  EXPECT_LT(run_iteration(experiment).report.step_time_s, 0.95 * without);
}

// Eight microbatches of one sequence: stage 3 moves 3 psi for each, stage 1 2 psi for all.
TEST(Zero, StageThreeCollapsesAtSmallBatchesOfAGpu) {
  const auto mfu = [](int zero, std::int64_t seq) {
    Experiment experiment = replicas("llama2-7b", 64);
    experiment.plan.zero = zero;
    experiment.plan.global_batch = 8 * 64;
    experiment.plan.seq = seq;
    return run_iteration(experiment).report.mfu;
  };
  EXPECT_GT(mfu(3, 4096), 0.9 * mfu(1, 4096));
  EXPECT_LT(mfu(3, 128), 0.5 * mfu(3, 4096));
  EXPECT_LT(mfu(3, 128), 0.5 * mfu(1, 128));
}

TEST(Zero, OffloadNeedsAHostOnRecord) {
  Experiment experiment = replicas("gpt2", 8);
  experiment.cluster.node.host = {};
  experiment.plan.zero = 2;
  experiment.plan.offload = Offload::optimizer;
  EXPECT_THROW(run_iteration(experiment), InputError);
}

TEST(Zero, OffloadedActivationsLowerThePeak) {
  Experiment experiment = replicas("llama2-7b", 1);
  experiment.plan.pp = 8;
  experiment.plan.global_batch = 32;
  experiment.plan.recompute = Recompute::full;
  const auto activations = [&] { return run_iteration(experiment).report.memory.front().activations_bytes; };
  const double kept = activations();
  experiment.plan.offload = Offload::activations;
  EXPECT_LT(activations(), 0.8 * kept);
}

}  // namespace
}  // namespace rehearse
