// Memory that PyTorch's allocator reserves beyond live tensors, and its causes.
#include "memory/reserved.h"

#include <gtest/gtest.h>

#include "memory/memory.h"
#include "memory/sizing.h"
#include "result/cases.h"

namespace rehearse {
namespace {

using namespace test;

constexpr double kEnough = 1e15;

struct Replayed {
  RankMemory memory;
  ReservedBytes bytes;
  double alive() const { return memory.activations_bytes + memory.logits_bytes; }
};

Replayed replayed(const Plan& plan, const Model& model = small_model(), double capacity = kEnough) {
  const Work work = make_work(model, plan);
  const Schedule schedule = full_schedule(plan);
  const RankMemory memory = rank_memory(schedule, plan, work).at(0);
  return {memory, replay_allocations(schedule.ranks[0], memory, plan, work, capacity)};
}

Plan fsdp_like(int pp, int microbatches) {
  Plan plan = small_plan(pp, 1, microbatches);
  plan.framework = Framework::torchtitan;
  return plan;
}

Plan tensor_parallel(Framework framework) {
  Plan plan = small_plan(1, 1, 2);
  plan.tp = 2;
  plan.seq = 4096;
  plan.framework = framework;
  return plan;
}

TEST(Reserved, WhatIsAllocatedIsWhatTheLifetimesSay) {
  for (const ScheduleName schedule : {ScheduleName::gpipe, ScheduleName::one_f_one_b, ScheduleName::zb_h1}) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      Plan plan = fsdp_like(4, 6);
      plan.schedule = schedule;
      plan.recompute = recompute;
      plan.fused_attention = false;
      const Replayed run = replayed(plan);
      EXPECT_NEAR(run.bytes.allocated, run.alive(), 1);
      EXPECT_GE(run.bytes.reserved, run.bytes.allocated);
    }
  }
}

// All that a layer makes is dropped before its recompute, in blocks of the sizes that it needs again.
TEST(Reserved, RecomputedLayersTakeTheBlocksOfThoseBefore) {
  Plan plan = fsdp_like(1, 2);
  plan.recompute = Recompute::full;
  plan.seq = 8192;
  const Replayed run = replayed(plan, small_model(32));
  EXPECT_LT(run.bytes.reserved, 1.25 * run.bytes.allocated);
}

TEST(Reserved, WhatGoesToTheHostIsGivenBackUntilItComesAgain) {
  Plan plan = fsdp_like(2, 8);
  plan.schedule = ScheduleName::gpipe;
  const double here = replayed(plan).bytes.allocated;
  plan.offload = Offload::activations;
  const Replayed run = replayed(plan);
  EXPECT_LT(run.bytes.allocated, 0.8 * here);
  EXPECT_NEAR(run.bytes.allocated, run.alive(), 1);
}

TEST(Reserved, OpsOfStagesWithoutLayersSeeWhatWentToTheHost) {
  Plan plan = small_plan(2, 2, 8);
  plan.framework = Framework::torchtitan;
  plan.offload = Offload::activations;
  plan.layers_per_stage = {6, 0, 0, 2};
  const Replayed run = replayed(plan);
  EXPECT_NEAR(run.bytes.allocated, run.alive(), 1);
}

// The host is a whole pass ahead: no tensor of an all-reduce is free before the pass has run.
TEST(Reserved, TensorsOfCollectivesStayUntilTheGpuHasCome) {
  Plan plan = tensor_parallel(Framework::deepspeed);
  plan.sequence_parallel = false;
  plan.recompute = Recompute::full;
  const Replayed ahead = replayed(plan);
  plan.launch_blocking = true;
  plan.overlap_grad_reduce = plan.tp_backward_overlap = false;
  const Replayed waits = replayed(plan);
  const double sum = 4096 * 256 * 2;  // b s h in 16 bits, twice a layer
  EXPECT_GE(ahead.bytes.allocated - waits.bytes.allocated, 8 * sum);
  EXPECT_NEAR(waits.bytes.allocated, waits.alive(), 1);
}

TEST(Reserved, AHostThatWaitsAfterEachPassHoldsLess) {
  Plan plan = tensor_parallel(Framework::megatron_2021);
  plan.sequence_parallel = false;
  plan.recompute = Recompute::full;
  const double waits = replayed(plan).bytes.allocated;
  plan.framework = Framework::deepspeed;
  EXPECT_LT(waits, replayed(plan).bytes.allocated);
}

TEST(Reserved, TheHostIsNoFurtherAheadThanTheQueueIsLong) {
  Plan plan = tensor_parallel(Framework::deepspeed);
  plan.sequence_parallel = false;
  plan.recompute = Recompute::full;
  const auto held = [&](int layers) {
    const Replayed run = replayed(plan, small_model(layers));
    return run.bytes.allocated - run.alive();
  };
  EXPECT_GT(held(32), 1.5 * held(8));
  EXPECT_LT(held(256), 1.2 * held(128));
}

// One buffer for the inputs of all layers, and none that waits for the GPU.
TEST(Reserved, GatheredInputsLieInABufferThatStays) {
  Plan plan = tensor_parallel(Framework::internevo);
  plan.sequence_parallel = true;
  const double apart = replayed(plan).bytes.allocated;
  plan.framework = Framework::nanotron;
  EXPECT_LT(replayed(plan).bytes.allocated, 0.9 * apart);
}

TEST(Reserved, WithoutRoomTheHostWaitsAndSegmentsAreGivenBack) {
  Plan plan = tensor_parallel(Framework::deepspeed);
  plan.sequence_parallel = false;
  plan.recompute = Recompute::full;
  const Replayed free = replayed(plan);
  const Replayed tight = replayed(plan, small_model(), 0.9 * free.bytes.reserved);
  EXPECT_LE(tight.bytes.reserved, 0.9 * free.bytes.reserved);
  EXPECT_GE(tight.bytes.reserved, tight.alive());
}

TEST(Reserved, AStageWithoutLayersReservesNothing) {
  Plan plan = fsdp_like(4, 4);
  plan.layers_per_stage = {3, 0, 2, 3};
  const Work work = make_work(small_model(), plan);
  const Schedule schedule = full_schedule(plan);
  const RankMemory memory = rank_memory(schedule, plan, work).at(1);
  EXPECT_EQ(replay_allocations(schedule.ranks[1], memory, plan, work, kEnough).reserved, 0);
}

TEST(Reserved, AFewRoundsAreEnoughWhereTheOrderGoesOnAlike) {
  Plan plan = fsdp_like(4, 64);
  plan.recompute = Recompute::full;
  const Work work = make_work(small_model(), plan);
  const Schedule schedule = full_schedule(plan);
  const RankMemory memory = rank_memory(schedule, plan, work).at(0);
  const ReservedBytes all = replay_allocations(schedule.ranks[0], memory, plan, work, kEnough);
  const ReservedBytes some =
      replay_allocations(schedule.ranks[0], memory, plan, work, kEnough, shortened(plan).microbatches());
  EXPECT_EQ(all.allocated, some.allocated);
  EXPECT_EQ(all.reserved, some.reserved);
}

TEST(Reserved, AddsWhatStaysForTheWholeRun) {
  const Plan plan = fsdp_like(1, 2);
  const Work work = make_work(small_model(), plan);
  const Schedule schedule = full_schedule(plan);
  const RankMemory memory = rank_memory(schedule, plan, work).at(0);
  const double moving = memory.activations_bytes + memory.logits_bytes;
  EXPECT_DOUBLE_EQ(reserved_bytes(schedule.ranks[0], memory, plan, work, kEnough),
                   memory.peak_bytes - moving +
                       replay_allocations(schedule.ranks[0], memory, plan, work, kEnough).reserved);
}

}  // namespace
}  // namespace rehearse
