// Every plan computes what one rank computes: loss, gradients and, step after step, the same training.
#include <gtest/gtest.h>

#include <algorithm>

#include "cases.h"

namespace rehearse {
namespace {

constexpr double kTolerance = 1e-5;

// Two steps: the second reads what the first has stepped and gathered.
void expect_same_training(const Training& training, const Model& model, int steps = 2) {
  Crew crew(training, {10, {}}), one(training_of(model, alone(training.plan)), {10, {}});
  std::string where;
  for (int step = 0; step < steps; ++step) {
    const double loss = one.step().loss;
    EXPECT_NEAR(crew.step().loss, loss, kTolerance * loss) << "step " << step;
    if (step == 0) {
      EXPECT_LT(largest_error(crew.gradients(), one.gradients(), where), kTolerance) << where;
    }
  }
}

struct Split {
  ScheduleName schedule;
  int tp, pp, dp;
  bool sequence_parallel;
};

std::string name_of(const Split& split) {
  std::string name = to_string(split.schedule) + "_tp" + std::to_string(split.tp) +
                     (split.sequence_parallel ? "_sp" : "") + "_pp" + std::to_string(split.pp) + "_dp" +
                     std::to_string(split.dp);
  std::ranges::replace(name, '-', '_');
  return name;
}

// All splits that fit eight ranks.
std::vector<Split> splits() {
  std::vector<Split> all;
  for (const ScheduleName schedule : {ScheduleName::gpipe, ScheduleName::one_f_one_b,
                                      ScheduleName::interleaved, ScheduleName::zb_h1, ScheduleName::zb_v})
    for (const int tp : {1, 2, 4})
      for (const int pp : {1, 2, 4})
        for (const int dp : {1, 2, 4})
          for (const bool sequence_parallel : {false, true}) {
            const bool two_chunks = schedule == ScheduleName::interleaved || schedule == ScheduleName::zb_v;
            if (tp * pp * dp > 8 || (two_chunks && pp != 2) || (sequence_parallel && tp == 1)) continue;
            if (schedule == ScheduleName::zb_v && dp > 1) continue;
            all.push_back({schedule, tp, pp, dp, sequence_parallel});
          }
  return all;
}

class Splits : public testing::TestWithParam<Split> {};

TEST_P(Splits, TrainAsOneRankDoes) {
  const Split& split = GetParam();
  Plan plan = plan_of(split.schedule, split.tp, split.pp, split.dp);
  plan.sequence_parallel = split.sequence_parallel;
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    SCOPED_TRACE(model.name);
    ASSERT_TRUE(broken_rules(plan, model, plan.gpus()).empty());
    expect_same_training(training_of(model, plan), model);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Splits, testing::ValuesIn(splits()),
                         [](const auto& split) { return name_of(split.param); });

TEST(Zero1, TrainsAsOneRankDoes) {
  for (const bool overlap : {false, true}) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, 2, 2, 2);
    plan.sequence_parallel = true;
    plan.zero = 1;
    plan.overlap_grad_reduce = overlap;
    for (const Model& model : {tiny_gpt(), tiny_llama()}) {
      SCOPED_TRACE(model.name);
      ASSERT_TRUE(broken_rules(plan, model, plan.gpus()).empty());
      expect_same_training(training_of(model, plan, 3), model, 3);
    }
  }
}

TEST(Recompute, TrainsAsOneRankThatKeepsAll) {
  for (const Recompute recompute : {Recompute::full, Recompute::selective}) {
    for (const bool fused : {false, true}) {
      Plan plan = plan_of(ScheduleName::zb_h1, 2, 2, 1);
      plan.sequence_parallel = true;
      plan.recompute = recompute;
      plan.fused_attention = fused;
      for (const Model& model : {tiny_gpt(), tiny_llama()}) {
        SCOPED_TRACE(model.name);
        expect_same_training(training_of(model, plan), model);
      }
    }
  }
}

TEST(UnevenStages, TrainAsOneRankDoes) {
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 2, 1);
  plan.layers_per_stage = {3, 1};
  plan.micro_batch = 2;
  expect_same_training(training_of(tiny_gpt(), plan), tiny_gpt());
}

TEST(HeadNorms, AreSummedOverTensorRanks) {
  Model model = tiny_llama();
  model.qk_norm = true;
  expect_same_training(training_of(model, plan_of(ScheduleName::one_f_one_b, 2, 1, 1)), model);
}

TEST(Training, FollowsTheSameLossesDown) {
  Plan plan = plan_of(ScheduleName::interleaved, 2, 2, 2);
  plan.sequence_parallel = true;
  plan.global_batch = 16;
  Training training = training_of(tiny_llama(), plan), reference = training_of(tiny_llama(), alone(plan));
  training.rate = reference.rate = 2e-2F;
  Crew crew(training, {10, {}}), one(reference, {10, {}});
  double first = 0, last = 0;
  for (int step = 0; step < 12; ++step) {
    last = one.step().loss;
    if (step == 0) first = last;
    EXPECT_NEAR(crew.step().loss, last, 2e-4 * last) << "step " << step;
  }
  EXPECT_LT(last, 0.95 * first);
}

TEST(Dropout, DrawsTheSameWhenItIsRunAgain) {
  Model model = tiny_gpt();
  model.dropout = true;
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 2, 1);
  plan.fused_attention = false;
  Plan again = plan;
  again.recompute = Recompute::full;
  Crew kept(training_of(model, plan), {10, {}}), rerun(training_of(model, again), {10, {}});
  EXPECT_DOUBLE_EQ(kept.step().loss, rerun.step().loss);
  std::string where;
  EXPECT_EQ(largest_error(rerun.gradients(), kept.gradients(), where), 0) << where;
}

}  // namespace
}  // namespace rehearse
