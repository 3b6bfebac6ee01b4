// Jobs that mix GPUs: each pipeline rank takes its own GPUs' time and has their memory.
#include "run/stage_nodes.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/read.h"
#include "run/iteration.h"
#include "scratch.h"

namespace rehearse {
namespace {

Experiment llama(const std::string& nodes) {
  Experiment experiment;
  experiment.model = read_model("llama3-8b");
  experiment.cluster = read_cluster("dgx-h100");
  experiment.profile = read_profile(experiment.cluster.profile);
  experiment.engine = Engine::reference;
  Plan& plan = experiment.plan;
  plan.tp = 8;
  plan.pp = 4;
  plan.dp = 2;
  plan.global_batch = 64;
  plan.sequence_parallel = true;
  plan.cuda_graph = true;  // so that no stage waits for its host
  experiment.stage_nodes = read_stage_nodes(nodes, plan, experiment.cluster);
  return experiment;
}

double step_s(const std::string& nodes) {
  return run_iteration(llama(nodes)).report.step_time_s;
}

TEST(StageNodes, OfTheJobsOwnKindChangeNothing) {
  EXPECT_DOUBLE_EQ(step_s("4*dgx-h100"), step_s(""));
}

TEST(StageNodes, OneSlowerStageSetsThePaceOfManyMicrobatches) {
  const double fast = step_s("4*dgx-h100"), slow = step_s("4*dgx-a100-80gb");
  const double mixed = step_s("3*dgx-h100,dgx-a100-80gb");
  EXPECT_GT(slow, 1.5 * fast);
  EXPECT_LT(mixed, slow);
  EXPECT_GT(mixed, fast + 0.8 * (slow - fast));
}

TEST(StageNodes, FewerLayersOnTheSlowerGpusBalanceThePipeline) {
  Experiment experiment = llama("2*dgx-h100,2*dgx-a100-80gb");
  const double even = run_iteration(experiment).report.step_time_s;
  experiment.plan.layers_per_stage = {11, 11, 5, 5};
  EXPECT_LT(run_iteration(experiment).report.step_time_s, 0.8 * even);
}

TEST(StageNodes, OpsTakeTheTimeOfTheirOwnGpu) {
  const OpTimes fast = prepare(llama("4*dgx-h100")).prices.times;
  const OpTimes slow = prepare(llama("4*dgx-a100-80gb")).prices.times;
  const Preparation mixed = prepare(llama("dgx-h100,2*dgx-a100-80gb,dgx-h100"));
  for (const std::size_t rank : {0U, 1U, 2U, 3U}) {
    const OpTimes& own = rank == 0 || rank == 3 ? fast : slow;
    EXPECT_DOUBLE_EQ(mixed.prices.times.stages[rank].forward.total(), own.stages[rank].forward.total());
    EXPECT_DOUBLE_EQ(mixed.prices.times.stages[rank].backward_weight.total(),
                     own.stages[rank].backward_weight.total());
    EXPECT_DOUBLE_EQ(mixed.prices.times.step[rank].total(), own.step[rank].total());
  }
}

TEST(StageNodes, TheFirstStageHasLeastToSpareUnlessAnotherHasSmallerGpus) {
  const Report even = run_iteration(llama("4*dgx-h100")).report;
  EXPECT_EQ(heaviest_rank(even).rank, 0);
  Experiment experiment = llama("3*dgx-h100,dgx-a100-80gb");
  experiment.stage_nodes.kinds.back().cluster.gpu.memory_bytes = 20e9;
  const Report mixed = run_iteration(experiment).report;
  EXPECT_EQ(heaviest_rank(mixed).rank, 3);
  EXPECT_DOUBLE_EQ(mixed.facts.gpu_memory_bytes, 20e9);
  EXPECT_DOUBLE_EQ(mixed.facts.peak_flops, (3 * 989e12 + 312e12) / 4);
}

TEST(StageNodes, AreOneForEachPipelineRankAndOneKindANode) {
  for (const char* nodes :
       {"dgx-h100", "5*dgx-h100", "0*dgx-h100,4*dgx-h100", "x*dgx-h100", "4*", "4*nowhere",
        "2*dgx-h100,,dgx-h100", "2*dgx-h100,2*polaris", "2*dgx-h100,2*p3.16xlarge"})
    EXPECT_THROW(llama(nodes), InputError) << nodes;
  Plan shared;  // two pipeline ranks in each node
  shared.tp = 4;
  shared.pp = 2;
  EXPECT_THROW(read_stage_nodes("dgx-h100,dgx-a100", shared, read_cluster("dgx-h100")), InputError);
  EXPECT_NO_THROW(read_stage_nodes("2*dgx-a100", shared, read_cluster("dgx-h100")));
  const Scratch scratch;
  const std::string bare = scratch.write("bare.json", R"({"schema": "rehearse.cluster/1", "source": "a test",
    "like": "dgx-h100", "profile": "", "gpu": {"name": "nobody's"}})");
  EXPECT_THROW(llama("3*dgx-h100," + bare), MissingCalibration);
}

}  // namespace
}  // namespace rehearse
