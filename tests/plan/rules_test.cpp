#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plan/plan.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Model llama_70b() {
  Model model;
  model.layers = 80;
  model.hidden = 8192;
  model.heads = 64;
  model.kv_heads = 8;
  model.head_dim = 128;
  model.ffn_hidden = 28672;
  model.vocab = 128256;
  return model;
}

Plan legal_plan() {
  Plan plan;
  plan.tp = 8;
  plan.pp = 4;
  plan.vpp = 5;
  plan.dp = 16;
  plan.global_batch = 1024;
  plan.schedule = ScheduleName::interleaved;
  plan.overlap_p2p = true;
  return plan;
}

std::string only_violation(const Plan& plan, const Model& model, int gpus) {
  const std::vector<Violation> broken = broken_rules(plan, model, gpus);
  EXPECT_THAT(broken, SizeIs(1));
  return broken.empty() ? "" : to_string(broken.front());
}

TEST(Rules, LegalPlanBreaksNone) {
  EXPECT_THAT(broken_rules(legal_plan(), llama_70b(), 512), IsEmpty());
}

TEST(Rules, EightyLayersOverSixteenByTwoStagesDoNotPassSilently) {
  Plan plan = legal_plan();
  plan.pp = 16;
  plan.vpp = 2;
  plan.dp = 4;
  const std::string text = only_violation(plan, llama_70b(), 512);
  EXPECT_THAT(text, HasSubstr("layers = 80, pp 16 x vpp 2 = 32"));
  EXPECT_THAT(text, HasSubstr("nearest legal: pp = 10 or 20, or vpp = 1 or 5"));
}

TEST(Rules, DegreesMustMultiplyToTheGpus) {
  Plan plan = legal_plan();
  plan.dp = 8;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("nearest legal: dp = 16"));
  plan.dp = 16;
  EXPECT_THAT(only_violation(plan, llama_70b(), 500), HasSubstr("gpus = 480 or 512"));
}

TEST(Rules, RanksAreCountedBeforeTheyOverflow) {
  Plan plan = legal_plan();
  plan.tp = plan.cp = plan.pp = plan.dp = 1 << 20;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("at most 1073741824 ranks"));
}

TEST(Rules, StagesAndExpertRanksAreCountedBeforeTheyOverflow) {
  Plan plan = legal_plan();
  plan.pp = plan.vpp = 1 << 16;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512),
              HasSubstr("at most 1073741824 stages (pp 65536 x vpp 65536); nearest legal: vpp = 16384"));
  plan = legal_plan();
  plan.ep = plan.etp = 1 << 16;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512),
              HasSubstr("at most 1073741824 ranks (ep 65536 x etp 65536); nearest legal: ep = 16384"));
}

TEST(Rules, GlobalBatchIsAMultipleOfMicroBatchTimesReplicas) {
  Plan plan = legal_plan();
  plan.global_batch = 1000;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("992 or 1008"));
}

TEST(Rules, InterleavingNeedsMicrobatchGroupsOfPp) {
  Plan plan = legal_plan();
  plan.global_batch = 16 * 6;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("global_batch = 64 or 128"));
}

TEST(Rules, InterleavingOnTwoRanksNeedsOverlap) {
  Plan plan = legal_plan();
  plan.pp = 2;
  plan.dp = 32;
  EXPECT_THAT(broken_rules(plan, llama_70b(), 512), IsEmpty());
  plan.overlap_p2p = false;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("pp >= 3 without overlap"));
}

TEST(Rules, ChunksNeedAnInterleavedSchedule) {
  Plan plan = legal_plan();
  plan.schedule = ScheduleName::one_f_one_b;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("vpp = 1, or schedule = interleaved-1f1b"));
}

TEST(Rules, TensorParallelMustDivideHeads) {
  Plan plan = legal_plan();
  plan.tp = 3;
  plan.dp = 16;
  const std::vector<Violation> broken = broken_rules(plan, llama_70b(), 3 * 16 * 4);
  ASSERT_THAT(broken, SizeIs(4));  // heads, hidden, FFN, kv heads
  EXPECT_THAT(to_string(broken[0]), HasSubstr("attention heads = 64, tp = 3); nearest legal: tp = 2 or 4"));
}

TEST(Rules, KvHeadsMayBeFewerThanTensorParallel) {
  Plan plan = legal_plan();
  plan.tp = 16;
  plan.dp = 8;
  EXPECT_THAT(broken_rules(plan, llama_70b(), 512), IsEmpty());
}

TEST(Rules, ListedLayersMustAddUp) {
  Plan plan = legal_plan();
  plan.layers_per_stage = std::vector<int>(20, 4);
  plan.layers_per_stage[0] = 3;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("add up to 79, layers = 80"));
  plan.layers_per_stage = {40, 40};
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("2 entries"));
}

TEST(Rules, LearnedPositionsBoundTheSequence) {
  Model model = llama_70b();
  model.positions = Positions::learned;
  model.max_positions = 2048;
  Plan plan = legal_plan();
  plan.seq = 4096;
  EXPECT_THAT(only_violation(plan, model, 512), HasSubstr("nearest legal: seq = 2048"));
}

TEST(Rules, SequenceParallelismSplitsTheSequence) {
  Plan plan = legal_plan();
  plan.sequence_parallel = true;
  plan.seq = 2047;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("2040 or 2048"));
}

Model mixture() {
  Model model = llama_70b();
  model.experts = Experts{8, 2, 14336};
  return model;
}

Plan mixture_plan() {
  Plan plan = legal_plan();
  plan.sequence_parallel = true;
  plan.ep = 8;
  return plan;
}

TEST(Rules, ExpertsDivideOverTheirRanks) {
  EXPECT_THAT(broken_rules(mixture_plan(), mixture(), 512), IsEmpty());
  Plan plan = mixture_plan();
  plan.ep = 16;
  EXPECT_THAT(only_violation(plan, mixture(), 512),
              HasSubstr("experts = 8, ep = 16); nearest legal: ep = 8"));
  plan = mixture_plan();
  plan.etp = 3;
  EXPECT_THAT(broken_rules(plan, mixture(), 512), SizeIs(2));
}

TEST(Rules, ExpertGroupsFitIntoAPipelineStage) {
  Plan plan = mixture_plan();
  plan.etp = 32;
  EXPECT_THAT(only_violation(plan, mixture(), 512), HasSubstr("ep x etp must divide tp x cp x dp"));
}

TEST(Rules, ExpertsAndOtherLayersShareTheirPipelines) {
  Plan plan = mixture_plan();
  plan.order = {Axis::tp, Axis::pp, Axis::cp, Axis::ep, Axis::dp};
  EXPECT_THAT(only_violation(plan, mixture(), 512), HasSubstr("same pipeline ranks"));
  plan.etp = 8;
  EXPECT_THAT(broken_rules(plan, mixture(), 512), IsEmpty());
}

TEST(Rules, ExpertsWithTensorParallelismNeedSequenceParallelism) {
  Plan plan = mixture_plan();
  plan.sequence_parallel = false;
  EXPECT_THAT(only_violation(plan, mixture(), 512), HasSubstr("need sequence parallelism"));
}

TEST(Rules, DenseModelsHaveNoExpertRanks) {
  Plan plan = legal_plan();
  plan.ep = 2;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("no experts"));
}

TEST(Rules, ExpertLoadsAreNumbersOfRowsOverAnEvenShare) {
  Plan plan = mixture_plan();
  plan.moe_imbalance = 0.5;
  EXPECT_THAT(only_violation(plan, mixture(), 512), HasSubstr("must be from 1"));
  plan.moe_imbalance = std::nan("");
  EXPECT_THAT(only_violation(plan, mixture(), 512), HasSubstr("must be from 1"));
  plan.moe_imbalance = 1.2;
  plan.moe_capacity = 1.5;
  EXPECT_THAT(only_violation(plan, mixture(), 512), HasSubstr("equal loads"));
}

TEST(Rules, ExpertsOfEarlierMegatronsLayWithinDataParallelRanks) {
  Plan plan = mixture_plan();
  plan.core_release = 9;
  EXPECT_THAT(only_violation(plan, mixture(), 512), HasSubstr("etp must equal tp before Megatron core 0.10"));
  plan.etp = plan.tp;
  EXPECT_THAT(broken_rules(plan, mixture(), 512), IsEmpty());
  plan.cp = 4;
  plan.dp = 4;
  EXPECT_THAT(only_violation(plan, mixture(), 512), HasSubstr("ep must divide dp"));
  plan.core_release = 10;
  EXPECT_THAT(broken_rules(plan, mixture(), 512), IsEmpty());
  plan = legal_plan();
  plan.core_release = 9;
  EXPECT_THAT(broken_rules(plan, llama_70b(), 512), IsEmpty()) << "each release trains dense models too";
}

TEST(Rules, ContextParallelismCutsTheSequenceIntoPairsOfChunks) {
  Plan plan = legal_plan();
  plan.cp = 4;
  plan.dp = 4;
  EXPECT_THAT(broken_rules(plan, llama_70b(), 512), IsEmpty());
  plan.seq = 2052;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("2048 or 2056"));
}

TEST(Rules, UlyssesSplitsTheHeadsOfATensorParallelRank) {
  Plan plan = legal_plan();
  plan.cp = 4;
  plan.dp = 4;
  plan.cp_exchange = ContextExchange::all_to_all;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("heads 8, kv heads 1, cp = 4"));
}

TEST(Rules, RingAttentionHasNoWindow) {
  Model model = llama_70b();
  model.window = 512;
  Plan plan = legal_plan();
  plan.cp = 4;
  plan.dp = 4;
  EXPECT_THAT(only_violation(plan, model, 512), HasSubstr("cp_comm_type = allgather, or cp_comm_type = a2a"));
  plan.cp_exchange = ContextExchange::gather;
  EXPECT_THAT(broken_rules(plan, model, 512), IsEmpty());
}

TEST(Rules, OverlapInChunksNeedsSequenceParallelism) {
  Plan plan = legal_plan();
  plan.tp_comm_overlap = true;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("sequence parallelism"));
}

TEST(Rules, MultiprocessorsAreLeftInChunksAlone) {
  Plan plan = legal_plan();
  plan.tp_comm_fc2_sms = 16;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("tp_comm_fc2_sms"));
  plan.sequence_parallel = plan.tp_comm_overlap = true;
  EXPECT_THAT(broken_rules(plan, llama_70b(), 512), IsEmpty());
  plan.framework = Framework::torchtitan;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("symmetric memory"));
}

TEST(Rules, HostileSizesAreRefusedWithoutOverflow) {
  Plan plan = legal_plan();
  plan.tp = plan.pp = plan.dp = 2000000000;
  EXPECT_THAT(broken_rules(plan, llama_70b(), 512), SizeIs(3));
  plan = legal_plan();
  plan.global_batch = std::int64_t{1} << 31;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("stages x microbatches"));
  plan = legal_plan();
  plan.micro_batch = 0;
  EXPECT_THAT(only_violation(plan, llama_70b(), 512), HasSubstr("micro_batch: must be from 1"));
}

}  // namespace
}  // namespace rehearse
