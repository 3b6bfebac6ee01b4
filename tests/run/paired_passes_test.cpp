// Expert all-to-alls that are concurrent with another microbatch's pass.
#include <gtest/gtest.h>

#include "cases.h"
#include "in_child.h"
#include "result/shares.h"
#include "run/iteration.h"

namespace rehearse {
namespace {

// Mixtral's layers over the eight expert-parallel ranks of a node, without CPU launch overhead.
Experiment mixtral(int microbatches, bool pairs) {
  Experiment experiment = replicas("mixtral-8x10m", 8);
  experiment.plan.ep = 8;
  experiment.plan.etp = 1;
  experiment.plan.cuda_graph = true;
  experiment.plan.global_batch = std::int64_t{8} * microbatches;
  experiment.plan.overlap_experts = pairs;
  return experiment;
}

// F0, then F and B in turn, then the last B: all but the first forward and the last backward have a partner.
TEST(PairedPasses, SaveWhatIsHiddenForEachButTheFirstAndTheLast) {
  const int microbatches = 5;
  const Iteration apart = run_iteration(mixtral(microbatches, false)),
                  paired = run_iteration(mixtral(microbatches, true));
  const StageTimes& stage = paired.preparation.prices.times.stages[0];
  const HiddenExchanges hidden = hidden_exchanges(stage.forward_phases, stage.backward_phases);
  EXPECT_GT(hidden.forward, 0);
  EXPECT_GT(hidden.backward, 0);
  const double saved = (microbatches - 1) * (hidden.forward + hidden.backward);
  const double bytes_are_whole = 1e-6 * saved;
  EXPECT_NEAR(apart.report.step_time_s - paired.report.step_time_s, saved, bytes_are_whole);
  EXPECT_NEAR(apart.report.time.exposed_ep - paired.report.time.exposed_ep, saved, bytes_are_whole);
  EXPECT_NEAR(paired.report.time.sum(), paired.report.step_time_s, 1e-9 * paired.report.step_time_s);
}

// The previous microbatch has released as many layers as the next one has saved. (Megatron-Bridge's Qwen3-30B
// on 16 H100 with passes in pairs: 62.2 GiB at the peak. One more microbatch's whole activations would make
// it 80.)
TEST(PairedPasses, HoldAboutOneMicrobatch) {
  const auto activations = [](bool pairs) {
    return run_iteration(mixtral(4, pairs)).report.memory.front().activations_bytes;
  };
  EXPECT_GE(activations(true), activations(false));
  EXPECT_LT(activations(true), 1.2 * activations(false));
}

// The phases of a pass are its parts, grouped otherwise.
TEST(PairedPasses, PhasesAddUpToThePass) {
  const Preparation ready = prepare(mixtral(2, true));
  const StageTimes& stage = ready.prices.times.stages[0];
  const ExpertPhases &forward = stage.forward_phases, &backward = stage.backward_phases;
  EXPECT_EQ(forward.layers, static_cast<double>(read_model("mixtral-8x10m").layers));
  EXPECT_NEAR(forward.dispatch + forward.combine, stage.forward.ep, 1e-12);
  EXPECT_NEAR(backward.dispatch + backward.combine, stage.backward_input.ep, 1e-12);
  EXPECT_LT(forward.attention + forward.experts, stage.forward.compute);  // which has embedding and head too
  EXPECT_GT(forward.attention, 0);
  EXPECT_GT(backward.experts, forward.experts);
}

// Over two nodes, without other traffic: a hidden all-to-all still crosses the links, and costs no more.
TEST(PairedPasses, TakeNoLongerInTheSimulatorWhereNothingContends) {
  const auto step = [](Engine engine) {
    return in_child([engine] {
      Experiment experiment = mixtral(4, true);
      experiment.plan.dp = 16;
      experiment.plan.ep = 8;
      experiment.plan.global_batch = 64;
      experiment.engine = engine;
      experiment.plan.overlap_grad_reduce = false;
      return std::vector{run_iteration(experiment).report.step_time_s};
    });
  };
  const auto simulated = step(Engine::simgrid), longest_path = step(Engine::reference);
  ASSERT_TRUE(simulated && longest_path);
  EXPECT_NEAR(simulated->front(), longest_path->front(), 1e-6 * longest_path->front());
}

}  // namespace
}  // namespace rehearse
