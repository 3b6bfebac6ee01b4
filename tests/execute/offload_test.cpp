// Plans with offload give the results of the same plans without it. Copies change the location of numbers,
// but no bit of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <set>
#include <utility>

#include "memory/memory.h"
#include "same_training.h"
#include "schedule/check.h"
#include "slow_copies.h"
#include "split.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

constexpr double kClip = 0.1;  // below the norm of these networks' gradients

bool has(const Training& training, OpKind kind) {
  return std::ranges::any_of(training.schedule.ranks, [kind](const RankOps& ops) {
    return std::ranges::any_of(ops.ops(), [kind](const Op& op) { return op.kind == kind; });
  });
}

void expect_same_bits(const WholeTensors& found, const WholeTensors& expected) {
  std::string where;
  EXPECT_EQ(largest_error(found, expected, where), 0) << where;
}

// Three steps: the third reads the results of the second optimizer step.
void expect_same_bits_as_without_offload(RankPool& rank_pool, Training training) {
  training = training_of(
      training.model,
      [&] {
        Plan plan = training.plan;
        plan.offload = Offload::none;
        return plan;
      }(),
      3);
  RankPool other(training, {10, {}});
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const StepResult expected = other.step(), found = rank_pool.step();
    EXPECT_EQ(found.loss, expected.loss);
    EXPECT_EQ(found.gradient_norm, expected.gradient_norm);
    expect_same_bits(rank_pool.gradients(), other.gradients());
    expect_same_bits(rank_pool.parameters(), other.parameters());
    expect_same_bits(rank_pool.master_weights(), other.master_weights());
  }
}

Plan plan_of(const Split& split, Offload offload) {
  Plan plan = plan_of(split.schedule, split.tp, split.pp, split.dp);
  plan.sequence_parallel = split.tp > 1;
  plan.zero = split.zero;
  plan.framework = Framework::torchtitan;  // which joins ZeRO-2 and 3 with pipelines
  plan.reduce_each_microbatch = split.zero >= 2 && split.dp == 2;
  plan.global_batch = std::max(8, 4 * split.dp);
  plan.offload = offload;
  return plan;
}

// All that fit eight ranks.
std::vector<Split> splits(Offload offload) {
  std::vector<Split> all;
  for (const ScheduleName schedule : {ScheduleName::gpipe, ScheduleName::one_f_one_b,
                                      ScheduleName::interleaved, ScheduleName::zb_h1, ScheduleName::zb_v})
    for (const int tp : {1, 2})
      for (const int pp : {1, 2, 4})
        for (const int dp : {1, 2, 4})
          for (const int zero : {0, 1, 2, 3}) {
            const Split split{.schedule = schedule, .tp = tp, .pp = pp, .dp = dp, .zero = zero};
            if (tp * pp * dp <= 8 && runs(plan_of(split, offload), tiny_llama())) all.push_back(split);
          }
  return all;
}

class ActivationsAtTheHost : public testing::TestWithParam<Split> {};

TEST_P(ActivationsAtTheHost, TrainAsOneRankDoes) {
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    SCOPED_TRACE(model.name);
    const Plan plan = plan_of(GetParam(), Offload::activations);
    if (!runs(plan, model)) continue;
    const Training training = training_of(model, plan, 3);
    ASSERT_TRUE(has(training, OpKind::offload) && has(training, OpKind::reload));
    ASSERT_THAT(check_schedule(training.schedule, plan), testing::IsEmpty());
    expect_same_training(training, model);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ActivationsAtTheHost, testing::ValuesIn(splits(Offload::activations)),
                         [](const auto& split) { return name_of(split.param); });

class OptimizerAtTheHost : public testing::TestWithParam<Split> {};

TEST_P(OptimizerAtTheHost, TrainsAsOneRankDoes) {
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    SCOPED_TRACE(model.name);
    const Plan plan = plan_of(GetParam(), Offload::optimizer);
    if (!runs(plan, model)) continue;
    const Training training = training_of(model, plan, 3);
    ASSERT_TRUE(has(training, OpKind::offload_grad) && has(training, OpKind::reload_param));
    ASSERT_THAT(check_schedule(training.schedule, plan), testing::IsEmpty());
    expect_same_training(training, model, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerAtTheHost, testing::ValuesIn(splits(Offload::optimizer)),
                         [](const auto& split) { return name_of(split.param); });

TEST(OptimizerAtTheHost, StepsToTheSameBits) {
  struct Numbers {
    Precision precision;
    Recipe recipe;
    Precision wire;
  };
  constexpr auto kWide = Precision::fp32, kShort = Precision::bf16;
  for (const auto& [precision, recipe, wire] : {Numbers{kWide, Recipe::megatron, kWide},
                                                {kWide, Recipe::megatron, kShort},
                                                {kShort, Recipe::megatron, kWide},
                                                {kShort, Recipe::megatron, kShort},
                                                {kShort, Recipe::zero, kShort},
                                                {kShort, Recipe::sagemaker, kShort},
                                                {kShort, Recipe::deepspeed_bf16, kWide},
                                                {kShort, Recipe::fsdp, kWide},
                                                {kShort, Recipe::bf16, kShort}})
    for (const Split& split : {Split{.pp = 2},
                               {.tp = 2, .pp = 2, .dp = 2, .zero = 1},
                               {.tp = 2, .dp = 2, .zero = 2},
                               {.dp = 2, .zero = 3},
                               {.schedule = ScheduleName::interleaved, .pp = 2, .dp = 2, .zero = 2}}) {
      SCOPED_TRACE(name_of(split) + " " + to_string(precision) + " " + to_string(recipe) + " " +
                   to_string(wire));
      Plan plan = plan_of(split, Offload::optimizer);
      plan.precision = precision;
      plan.recipe = recipe;
      plan.grad_reduce = wire;
      const Training training = training_of(tiny_gpt(), plan, 3);
      RankPool rank_pool(training, {10, {}});
      expect_same_bits_as_without_offload(rank_pool, training);
    }
}

TEST(OptimizerAtTheHost, ClipsByTheNormOfAllGradients) {
  for (const int zero : {1, 2}) {
    Plan plan = plan_of({.tp = 2, .dp = 2, .zero = zero}, Offload::optimizer);
    plan.clip_grad = kClip;
    const Training training = training_of(tiny_gpt(), plan, 3);
    RankPool rank_pool(training, {10, {}});
    expect_same_training(rank_pool, training_of(tiny_gpt(), alone(plan)));
  }
}

TEST(ShardingGroupsAtTheHost, SumTheirShards) {
  for (const int zero : {1, 2, 3}) {
    Plan plan = plan_of({.dp = 4, .zero = zero}, Offload::optimizer);
    plan.framework = Framework::fsdp;
    plan.zero_shard = 2;
    ASSERT_TRUE(runs(plan, tiny_gpt()));
    expect_same_training(training_of(tiny_gpt(), plan), tiny_gpt(), 3);
  }
}

TEST(ExpertsAtTheHost, TrainAsOneRankDoes) {
  for (const int zero : {1, 2}) {
    Plan plan = plan_of({.dp = 2, .zero = zero}, Offload::optimizer);
    plan.ep = 2;
    expect_same_training(training_of(tiny_mixtral(), plan), tiny_mixtral(), 3);
  }
  Plan plan = plan_of({.pp = 2, .dp = 2}, Offload::activations);
  plan.ep = 2;
  expect_same_training(training_of(tiny_mixtral(), plan), tiny_mixtral());
}

TEST(AtTheHost, TheSameLossesAreFollowedDown) {
  for (const Offload offload : {Offload::activations, Offload::optimizer})
    expect_same_losses(plan_of({.schedule = ScheduleName::interleaved, .pp = 2, .dp = 2, .zero = 1}, offload),
                       tiny_llama());
}

TEST(AtTheHost, RecomputeDropoutAndOneQueueChangeNothing) {
  Model model = tiny_gpt();
  model.dropout = true;
  for (const bool one_queue : {false, true})
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      Plan plan = plan_of({.schedule = ScheduleName::gpipe, .pp = 2}, Offload::activations);
      plan.recompute = recompute;
      plan.fused_attention = false;
      plan.one_queue = one_queue;
      const Training training = training_of(model, plan);
      RankPool rank_pool(training, {10, {}});
      expect_same_bits_as_without_offload(rank_pool, training);
    }
}

// A long copy must end before its memory is reused, and before its data is read.
TEST(AtTheHost, SlowCopiesAreWaitedFor) {
  const auto train = [](const Model& model, const Plan& plan) {
    const Training training = training_of(model, plan, 3);
    DeviceSet device_set = threads_of(plan);
    device_set.devices.front() = std::make_unique<DeviceOfSlowCopies>();
    RankPool rank_pool(training, {10, {}}, std::move(device_set));
    expect_same_bits_as_without_offload(rank_pool, training);
  };
  for (const Offload offload : {Offload::activations, Offload::optimizer})
    for (const Split& split : {Split{.pp = 4},
                               {.schedule = ScheduleName::gpipe, .pp = 2},
                               {.schedule = ScheduleName::zb_h1, .pp = 2},
                               {.dp = 2, .zero = 2},
                               {.pp = 2, .dp = 2, .zero = 2}}) {
      SCOPED_TRACE(name_of(split) + " " + to_string(offload));
      for (const Model& model : {tiny_gpt(), tiny_llama()})
        if (const Plan plan = plan_of(split, offload); runs(plan, model)) train(model, plan);
    }
}

struct Peaks {
  double found = 0, predicted = 0;
};

// On the rank of the first stage, which receives no activations: message buffers are not counted here.
Peaks peaks_on_first_rank(const Plan& plan) {
  const Training training = training_of(tiny_gpt(), plan);
  RankPool rank_pool(training, {10, {}});
  rank_pool.step();
  const RankMemory memory =
      activation_memory(training.schedule, plan, training.work, stage_bytes(training.work)).front();
  return {rank_pool.peak_activation_bytes().front(), memory.activations_bytes + memory.logits_bytes};
}

// The prediction of a running op frees each tensor as autograd does; an executed op frees in the order of its
// kernel list. The difference is in both peaks here.
TEST(ActivationsAtTheHost, LeaveAsMuchMemoryAsIsPredicted) {
  for (const auto& [schedule, pp] : {std::pair{ScheduleName::one_f_one_b, 4},
                                     {ScheduleName::interleaved, 2},
                                     {ScheduleName::zb_h1, 2},
                                     {ScheduleName::zb_h1, 4},
                                     {ScheduleName::zb_v, 2}}) {
    SCOPED_TRACE(to_string(schedule) + " on " + std::to_string(pp));
    const Peaks without = peaks_on_first_rank(plan_of(schedule, 1, pp, 1));
    const Peaks with = peaks_on_first_rank(plan_of({.schedule = schedule, .pp = pp}, Offload::activations));
    EXPECT_NE(with.predicted, without.predicted);
    EXPECT_EQ(without.found - with.found, without.predicted - with.predicted);
  }
  const Peaks gpipe =
      peaks_on_first_rank(plan_of({.schedule = ScheduleName::gpipe, .pp = 2}, Offload::activations));
  EXPECT_EQ(gpipe.found, gpipe.predicted);
  EXPECT_LT(gpipe.found, 0.5 * peaks_on_first_rank(plan_of(ScheduleName::gpipe, 1, 2, 1)).found);
}

// GPipe keeps all microbatches: of each, all that is saved goes.
TEST(ActivationsAtTheHost, AreAllThatIsSavedButForTheLoss) {
  const Training training =
      training_of(tiny_gpt(), plan_of({.schedule = ScheduleName::gpipe, .pp = 2}, Offload::activations));
  RankPool rank_pool(training, {10, {}});
  rank_pool.step();
  const std::vector<StageBytes> stages = stage_bytes(training.work);
  EXPECT_GT(stages[1].saved.logits, 0);
  for (std::size_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(rank_pool.peak_offloaded_bytes()[rank],
              training.plan.microbatches() * stages[rank].saved.others());
}

using Change = std::function<void(Op&)>;  // of the first op of a kind

// The training with a changed list of the first rank: its first op of a kind is removed, or replaced by
// `change`. Ops that waited for a removed op wait for its predecessors.
Training changed(Training training, OpKind kind, const Change& change = {}) {
  const RankOps from = training.schedule.ranks.front();
  RankOps to;
  std::vector<std::vector<std::int32_t>> moved;  // by old op
  bool done = false;
  for (Op op : from.ops()) {
    std::set<std::int32_t> waits;
    for (const std::int32_t wait : from.waits(op)) {
      const std::vector<std::int32_t>& now = moved[static_cast<std::size_t>(wait)];
      waits.insert(now.begin(), now.end());
    }
    const std::vector<std::int32_t> kept(waits.begin(), waits.end());
    const bool is_it = op.kind == kind && !std::exchange(done, done || op.kind == kind);
    if (is_it && change) change(op);
    moved.push_back(is_it && !change ? kept : std::vector{to.add(op, kept)});
  }
  training.schedule.ranks.front() = to;
  return training;
}

std::string failure_of(const Training& training) {
  RankPool rank_pool(training, {10, {}});
  try {
    rank_pool.step();
  } catch (const kernels::DeviceError& error) {
    return error.what();
  }
  return "";
}

TEST(LostCopies, OfActivationsAreFoundBeforeAndWhileTheyRun) {
  const Plan plan = plan_of({.pp = 4}, Offload::activations);
  const Training good = training_of(tiny_llama(), plan);
  EXPECT_EQ(failure_of(good), "");
  const Training no_reload = changed(good, OpKind::reload), no_offload = changed(good, OpKind::offload);
  EXPECT_THAT(check_schedule(no_reload.schedule, plan),
              testing::Contains(HasSubstr("0B0 on rank 0 needs 0RELOAD0")));
  EXPECT_THAT(failure_of(no_reload), HasSubstr("0B0: its activations have not come back from the host"));
  EXPECT_FALSE(check_schedule(no_offload.schedule, plan).empty());
  EXPECT_THAT(failure_of(no_offload), HasSubstr("0RELOAD0: its activations have not left"));
  const Training other = changed(good, OpKind::reload, [](Op& op) { op.microbatch = 1; });
  EXPECT_FALSE(check_schedule(other.schedule, plan).empty());
  EXPECT_THAT(failure_of(other), HasSubstr("0B0: its activations have not come back from the host"));
}

TEST(LostCopies, OfTheOptimizerChangeTheTraining) {
  const Plan plan = plan_of({.dp = 2, .zero = 1}, Offload::optimizer);
  const Training good = training_of(tiny_llama(), plan);
  for (const OpKind lost : {OpKind::offload_grad, OpKind::reload_param}) {
    const Training bad = changed(good, lost);
    RankPool rank_pool(bad, {10, {}}), other(good, {10, {}});
    rank_pool.step();
    other.step();
    std::string where;
    EXPECT_GT(largest_error(rank_pool.parameters(), other.parameters(), where), 1e-4) << to_string(lost);
  }
  Plan each = plan_of({.dp = 2, .zero = 2}, Offload::optimizer);
  const Training sums = training_of(tiny_llama(), each);
  EXPECT_EQ(failure_of(sums), "");
  EXPECT_THAT(failure_of(changed(sums, OpKind::offload_grad)), HasSubstr("have not left"));
}

}  // namespace
}  // namespace rehearse
