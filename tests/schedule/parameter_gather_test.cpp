#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "replay.h"
#include "schedule/check.h"
#include "schedule/orders.h"
#include "schedule/text.h"
#include "shapes.h"

namespace rehearse {
namespace {

Schedule gathered(GatherTime time, int prefetch, int units,
                  const Schedule& order = orders::one_f_one_b({1, 1})) {
  GradientSync sync{true, false, 2, {units}};
  sync.each_microbatch = true;
  return add_parameter_gather(add_gradient_sync(order, sync), {time, prefetch, {units}});
}

// Names alone, without waits.
std::vector<std::string> names(const Schedule& schedule) {
  std::vector<std::string> names;
  for (const Op& op : schedule.ranks[0].ops()) names.push_back(to_string(op));
  return names;
}

TEST(ParameterGather, EachUnitIsWholeOnlyAroundItsUse) {
  EXPECT_EQ(write_text(gathered(GatherTime::each_use, 1, 2)),
            "rank 0: 0UNSHARD.0/2 0UNSHARD.1/2 0F0.0/2(0UNSHARD.0/2) 0RESHARD.0/2(0F0.0/2) "
            "0F0.1/2(0UNSHARD.1/2) 0RESHARD.1/2(0F0.1/2) 0UNSHARD.1/2 0UNSHARD.0/2 0B0.0/2(0UNSHARD.1/2) "
            "0RESHARD.1/2(0B0.0/2) 0REDUCE_GRAD.0/2 0B0.1/2(0UNSHARD.0/2) 0RESHARD.0/2(0B0.1/2) "
            "0REDUCE_GRAD.1/2 0STEP\n");
}

TEST(ParameterGather, WithoutPrefetchTheNextGatherFollowsTheDrop) {
  EXPECT_THAT(names(gathered(GatherTime::each_use, 0, 2)),
              ::testing::ElementsAre("0UNSHARD.0", "0F0.0", "0RESHARD.0", "0UNSHARD.1", "0F0.1", "0RESHARD.1",
                                     "0UNSHARD.1", "0B0.0", "0RESHARD.1", "0UNSHARD.0", "0REDUCE_GRAD.0",
                                     "0B0.1", "0RESHARD.0", "0REDUCE_GRAD.1", "0STEP"));
}

Schedule gathered_alone(int prefetch, int units) {
  GradientSync sync{true, false, 2, {units}};
  sync.alone = true;
  const Schedule reduced = add_gradient_sync(orders::one_f_one_b({1, 1}), sync);
  return add_parameter_gather(reduced, {GatherTime::each_use, prefetch, {units}, true});
}

TEST(ParameterGather, AfterReductionsWaitsForEachBeforeIt) {
  EXPECT_EQ(write_text(gathered_alone(0, 2)),
            "rank 0: 0UNSHARD.0/2 0F0.0/2(0UNSHARD.0/2) 0RESHARD.0/2(0F0.0/2) 0UNSHARD.1/2 "
            "0F0.1/2(0UNSHARD.1/2) 0RESHARD.1/2(0F0.1/2) 0UNSHARD.1/2 0B0.0/2(0UNSHARD.1/2) "
            "0RESHARD.1/2(0B0.0/2) 0REDUCE_GRAD.0/2 0UNSHARD.0/2(0REDUCE_GRAD.0/2) "
            "0B0.1/2(0REDUCE_GRAD.0/2,0UNSHARD.0/2) 0RESHARD.0/2(0B0.1/2) 0REDUCE_GRAD.1/2 0STEP\n");
}

TEST(ParameterGather, AfterReductionsIsStillAheadOfTheUnitsTurn) {
  EXPECT_THAT(names(gathered_alone(1, 3)),
              ::testing::ElementsAre("0UNSHARD.0", "0UNSHARD.1", "0F0.0", "0RESHARD.0", "0UNSHARD.2", "0F0.1",
                                     "0RESHARD.1", "0F0.2", "0RESHARD.2", "0UNSHARD.2", "0UNSHARD.1", "0B0.0",
                                     "0RESHARD.2", "0REDUCE_GRAD.0", "0UNSHARD.0", "0B0.1", "0RESHARD.1",
                                     "0REDUCE_GRAD.1", "0B0.2", "0RESHARD.0", "0REDUCE_GRAD.2", "0STEP"));
}

TEST(ParameterGather, KeptForTheIterationEachUnitIsGatheredOnce) {
  EXPECT_THAT(names(gathered(GatherTime::iteration, 1, 2)),
              ::testing::ElementsAre("0UNSHARD.0", "0UNSHARD.1", "0F0.0", "0F0.1", "0B0.0", "0RESHARD.1",
                                     "0REDUCE_GRAD.0", "0B0.1", "0RESHARD.0", "0REDUCE_GRAD.1", "0STEP"));
}

TEST(ParameterGather, KeptForAMicrobatchEachUnitIsGatheredForEveryForward) {
  EXPECT_THAT(names(gathered(GatherTime::microbatch, 1, 2, orders::one_f_one_b({1, 2}))),
              ::testing::ElementsAre("0UNSHARD.0", "0UNSHARD.1", "0F0.0", "0F0.1", "0B0.0", "0RESHARD.1",
                                     "0REDUCE_GRAD.0", "0B0.1", "0RESHARD.0", "0UNSHARD.0", "0UNSHARD.1",
                                     "0REDUCE_GRAD.1", "0F1.0", "0F1.1", "0B1.0", "0RESHARD.1",
                                     "0REDUCE_GRAD.0", "0B1.1", "0RESHARD.0", "0REDUCE_GRAD.1", "0STEP"));
}

TEST(ParameterGather, KeptForAMicrobatchASecondForwardReadsWhatIsWhole) {
  EXPECT_THAT(names(gathered(GatherTime::microbatch, 1, 1, orders::gpipe({1, 2}))),
              ::testing::ElementsAre("0UNSHARD", "0F0", "0F1", "0B0", "0RESHARD", "0UNSHARD", "0REDUCE_GRAD",
                                     "0B1", "0RESHARD", "0REDUCE_GRAD", "0STEP"));
}

TEST(ParameterGather, AfterTheStepWaitsForIt) {
  EXPECT_THAT(write_text(gathered(GatherTime::after_step, 1, 1)),
              ::testing::EndsWith("0STEP 0UNSHARD(0STEP)\n"));
}

TEST(ParameterGather, FromTheHostWaitsForTheCopy) {
  GradientSync sync{true, false, 2, {1}};
  sync.across = sync.to_host = true;
  const Schedule schedule = add_parameter_gather(add_gradient_sync(orders::one_f_one_b({1, 1}), sync),
                                                 {GatherTime::after_step, 1, {1}});
  EXPECT_EQ(write_text(schedule),
            "rank 0: 0F0 0B0 0REDUCE_GRAD 0REDUCE_REPLICAS(0REDUCE_GRAD) 0OFFLOAD_GRAD(0REDUCE_REPLICAS) "
            "0STEP(0REDUCE_REPLICAS,0OFFLOAD_GRAD) 0RELOAD_PARAM(0STEP) 0UNSHARD(0RELOAD_PARAM)\n");
}

TEST(ParameterGather, PyTorchFilesNameWholeGathersAroundTheirOp) {
  EXPECT_EQ(write_csv(gathered(GatherTime::each_use, 1, 2)),
            "0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD,0REDUCE_GRAD\n");
}

TEST(ParameterGather, WantsAUnitCountForEveryStage) {
  EXPECT_THROW(add_parameter_gather(orders::one_f_one_b({2, 2}), {GatherTime::each_use, 1, {1}}),
               std::logic_error);
}

// A plan of ZeRO-3 under any pipeline.
PipelineShape sharded_shape() {
  PipelineShape shape = *any_shape();
  shape.plan.global_batch = 2 * shape.plan.microbatches();
  shape.plan.dp = shape.sync.replicas = 2;
  shape.plan.zero = 3;
  shape.plan.prefetch = *rc::gen::inRange(0, 4);
  shape.plan.reshard_after_forward = *rc::gen::arbitrary<bool>();
  shape.sync.overlap = true;
  shape.sync.each_microbatch = *rc::gen::arbitrary<bool>();
  return shape;
}

RC_GTEST_PROP(ParameterGather, PassesEveryCheck, ()) {
  const PipelineShape shape = sharded_shape();
  const auto faults = check_schedule(shape.complete(), shape.plan);
  RC_ASSERT(faults.empty());
}

RC_GTEST_PROP(ParameterGather, HoldsNoMoreUnitsThanPrefetchAllows, ()) {
  PipelineShape shape = sharded_shape();
  shape.plan.reshard_after_forward = true;
  for (const RankOps& ops : shape.complete().ranks) {
    int whole = 0;
    for (const Op& op : ops.ops()) {
      whole += op.kind == OpKind::unshard ? 1 : op.kind == OpKind::reshard ? -1 : 0;
      RC_ASSERT(whole <= shape.plan.prefetch + 1);
    }
    RC_ASSERT(whole == 0);
  }
}

RC_GTEST_PROP(ParameterGather, CostsNothingWhenGathersAreFree, ()) {
  const PipelineShape shape = sharded_shape();
  const double expected = replay(add_transfers(make_order(shape.plan), shape.plan.overlap_p2p), {}).makespan;
  RC_ASSERT(std::abs(replay(shape.complete(), {}).makespan - expected) < 1e-9 * expected);
}

RC_GTEST_PROP(ParameterGather, AMissingGatherIsFound, ()) {
  const PipelineShape shape = sharded_shape();
  const Schedule schedule = shape.complete();
  std::vector<std::size_t> left = all_ops(schedule, 0);
  const auto first =
      std::ranges::find_if(left, [&](std::size_t i) { return schedule.ranks[0][i].kind == OpKind::unshard; });
  left.erase(first);
  RC_ASSERT(!check_schedule(with_list(schedule, 0, left), shape.plan).empty());
}

TEST(ActivationOffload, CopiesHideBehindTheOpsBetween) {
  const Schedule schedule = add_activation_offload(read_text("rank 0: 0F0 0F1 0F2 0B0 0B1 0B2\n", "three"));
  EXPECT_EQ(write_text(schedule),
            "rank 0: 0F0 0OFFLOAD0(0F0) 0F1 0OFFLOAD1(0F1) 0RELOAD0(0OFFLOAD0,0F1) 0F2(0OFFLOAD0) "
            "0OFFLOAD2(0F2) 0RELOAD1(0OFFLOAD1,0F2) 0B0(0RELOAD0,0OFFLOAD1) 0RELOAD2(0OFFLOAD2,0B0) "
            "0B1(0RELOAD1,0OFFLOAD2) 0B2(0RELOAD2)\n");
}

TEST(ActivationOffload, ABackwardThatFollowsAtOnceNeedsNoCopy) {
  const Schedule order = orders::one_f_one_b({1, 4});
  EXPECT_TRUE(same(add_activation_offload(order), order));
}

RC_GTEST_PROP(ActivationOffload, PassesEveryCheck, ()) {
  PipelineShape shape = *any_shape();
  shape.plan.offload = Offload::activations;
  RC_ASSERT(check_schedule(shape.complete(), shape.plan).empty());
}

}  // namespace
}  // namespace rehearse
