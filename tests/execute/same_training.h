// Does a training run give the results of one rank?
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "cases.h"

namespace rehearse {

constexpr double kTolerance = 1e-5;

// Two steps: the second reads the results of the first optimizer step, and gathers them.
inline void expect_same_training(RankPool& rank_pool, const Training& alone, int steps = 2) {
  RankPool one(alone, {10, {}});
  std::string where;
  for (int step = 0; step < steps; ++step) {
    const StepResult expected = one.step(), found = rank_pool.step();
    EXPECT_NEAR(found.loss, expected.loss, kTolerance * expected.loss) << "step " << step;
    EXPECT_NEAR(found.gradient_norm, expected.gradient_norm, kTolerance * expected.gradient_norm)
        << "step " << step;
    if (step == 0) {
      EXPECT_LT(largest_error(rank_pool.gradients(), one.gradients(), where), kTolerance) << where;
    }
  }
}

inline void expect_same_training(const Training& training, const Model& model, int steps = 2) {
  RankPool rank_pool(training, {10, {}});
  expect_same_training(rank_pool, training_of(model, alone(training.plan)), steps);
}

inline void expect_as_one_rank(const Plan& plan, const Model& model) {
  ASSERT_TRUE(runs(plan, model));
  expect_same_training(training_of(model, plan), model);
}

// Every number of tensor-parallel ranks, stages and replicas under every kind of schedule.
inline void expect_as_one_rank_however_divided(const Model& model) {
  for (const ScheduleName schedule : {ScheduleName::gpipe, ScheduleName::one_f_one_b,
                                      ScheduleName::interleaved, ScheduleName::zb_h1, ScheduleName::zb_v}) {
    const bool two_chunks = schedule == ScheduleName::interleaved || schedule == ScheduleName::zb_v;
    for (const auto& [tp, pp, dp] :
         {std::tuple{1, 1, 2}, {2, 1, 1}, {4, 1, 2}, {1, 2, 1}, {2, 2, 2}, {1, 4, 1}}) {
      if (two_chunks && pp != 2) continue;
      for (const bool sequence_parallel : {false, true}) {
        if (sequence_parallel && tp == 1) continue;
        Plan plan = plan_of(schedule, tp, pp, dp);
        plan.sequence_parallel = sequence_parallel;
        plan.clip_grad = 0.1;
        SCOPED_TRACE(testing::Message() << to_string(schedule) << " tp " << tp << " pp " << pp << " dp " << dp
                                        << " sequence parallel " << sequence_parallel);
        expect_as_one_rank(plan, model);
      }
    }
  }
}

// Twelve steps at a rate at which the loss falls by a twentieth.
inline void expect_same_losses(Plan plan, const Model& model, float rate = 2e-2F) {
  plan.global_batch = 16;
  Training training = training_of(model, plan), reference = training_of(model, alone(plan));
  training.rate = reference.rate = rate;
  RankPool rank_pool(training, {10, {}}), one(reference, {10, {}});
  double first = 0, last = 0;
  for (int step = 0; step < 12; ++step) {
    last = one.step().loss;
    if (step == 0) first = last;
    EXPECT_NEAR(rank_pool.step().loss, last, 2e-4 * last) << "step " << step;
  }
  EXPECT_LT(last, 0.95 * first);
}

}  // namespace rehearse
