// Whole experiments, from names to the report.
#include "run/iteration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/collectives.h"
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

// nanoGPT on A100s: "~25 % speedup" (Karpathy, 3 February 2023); torch.compile and CUDA graphs keep the host
// out of it.
TEST(Iteration, PaddingTheVocabularyOfGpt2IsWorthAQuarterOfAStepOnA100) {
  Experiment experiment;
  experiment.model = read_model("gpt2");
  experiment.cluster = read_cluster("dgx-a100-80gb");
  experiment.profile = read_profile("a100-sxm-80gb");
  Plan& plan = experiment.plan;
  plan.dp = plan.micro_batch = 8;
  plan.global_batch = 64;
  plan.seq = 1024;
  plan.cuda_graph = true;
  experiment.engine = Engine::reference;
  const Report odd = run_iteration(experiment).report;
  EXPECT_THAT(odd.facts.warnings,
              ::testing::Contains(::testing::HasSubstr("logits of the head (50257, nearest 50264)")));
  experiment.model.vocab = 50304;
  const Report padded = run_iteration(experiment).report;
  EXPECT_THAT(padded.facts.warnings, ::testing::Not(::testing::Contains(::testing::HasSubstr("logits"))));
  EXPECT_GT(odd.step_time_s, 1.15 * padded.step_time_s);
  EXPECT_LT(odd.step_time_s, 1.40 * padded.step_time_s);
}

// OLMo 2's norms need the other ranks' heads; Cohere's do not.
TEST(Iteration, NamesTheAllReduceOfNormsOverAllHeads) {
  Experiment experiment = replicas("llama3-8b", 1);
  experiment.model.layers = 2;
  experiment.model.qk_norm = true;
  experiment.model.qk_norm_span = QkNormSpan::all_heads;
  const auto warnings = [&] { return run_iteration(experiment).report.facts.warnings; };
  const auto named = testing::Contains(testing::HasSubstr("over all heads: at tp 2"));
  EXPECT_THAT(warnings(), testing::Not(named));
  experiment.plan.tp = 2;
  EXPECT_THAT(warnings(), named);
  experiment.model.qk_norm_span = QkNormSpan::each_head;
  EXPECT_THAT(warnings(), testing::Not(named));
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

TEST(Iteration, SimulatesEveryRankWhereTheyAreNotAlike) {
  Experiment experiment = llama_70b();
  EXPECT_EQ(prepare(experiment).tasks.instances.size(), 4u);
  experiment.plan.tp = 4;
  experiment.plan.dp = 3;  // a stage begins in the middle of a node
  experiment.plan.global_batch = 48;
  EXPECT_EQ(prepare(experiment).tasks.instances.size(), 48u);
}

TEST(Iteration, SaysWhenItFoldsRanksThatAreNotAlikeForTheirNumber) {
  Experiment experiment = llama_70b();
  experiment.plan.tp = 4;
  experiment.plan.dp = 75;
  experiment.plan.global_batch = 75 * 16;
  const Iteration folded = run_iteration(experiment);
  EXPECT_EQ(folded.preparation.tasks.instances.size(), 4u);
  EXPECT_THAT(folded.report.facts.warnings, testing::Contains(testing::HasSubstr("--fold none")));
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

Experiment mixtral(int dp) {
  Experiment experiment = llama_70b();
  experiment.model = read_model("mixtral-8x7b");
  experiment.engine = Engine::reference;
  experiment.profile.collectives = nullptr;  // latencies of rings that hold for any size
  experiment.profile.links = {{"nvswitch", "ring", 1e-5, 1e-6, 0.8, How::published},
                              {"nvswitch", "send", 1e-5, 0, 0.8, How::published},
                              {"infiniband", "ring", 2e-5, 4e-6, 0.9, How::published},
                              {"infiniband", "send", 2e-5, 0, 0.9, How::published}};
  experiment.plan = {};
  Plan& plan = experiment.plan;
  plan.dp = dp;
  plan.ep = 8;
  plan.global_batch = dp;
  plan.overlap_grad_reduce = false;
  return experiment;
}

double latency_of_reduction(const Experiment& experiment) {
  const Preparation ready = prepare(experiment);
  for (TaskId task = 0; task < ready.tasks.size(); ++task) {
    const Op& op = ready.schedule.ranks[0][static_cast<std::size_t>(ready.tasks.leader[task].op)];
    if (op.kind == OpKind::reduce_grad) return ready.loads.fixed_s[task];
  }
  return -1;
}

TEST(Iteration, ReducesGradientsOfExpertsOverTheRanksThatHoldThem) {
  const auto latency = [](const GroupShape& group) {
    const Experiment e = mixtral(8);
    return collective_time(e.profile, e.cluster, CollectiveOp::all_reduce, 1e9, group).latency_s;
  };
  EXPECT_DOUBLE_EQ(latency_of_reduction(mixtral(8)), latency({8, 1, 1}));  // each expert is on one rank
  EXPECT_DOUBLE_EQ(latency_of_reduction(mixtral(16)), latency({16, 2, 1}) + latency({2, 2, 1}));
}

TEST(Iteration, SendsOnlySharedGradientsWhenEveryExpertIsOnOneRank) {
  const auto bytes = [](int dp) {
    double sum = 0;
    for (const CommunicationLine& line : run_iteration(mixtral(dp)).report.communication)
      if (line.kind == "dp") sum += line.bytes_per_rank;
    return sum;
  };
  const double experts = 32.0 * 3 * 4096 * 14336;  // one of each layer
  EXPECT_DOUBLE_EQ(bytes(16) - bytes(8), 4 * experts);
}

// Narayanan et al. 2021, section 3.2 and figure 13: all-reduces between nodes cost more than a shorter
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
  EXPECT_GT(far.time.exposed_tp, near.time.exposed_tp);
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
