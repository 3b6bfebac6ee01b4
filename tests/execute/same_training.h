// Does a training run compute what one rank computes?
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "cases.h"

namespace rehearse {

constexpr double kTolerance = 1e-5;

// Two steps: the second reads what the first has stepped and gathered.
inline void expect_same_training(Crew& crew, const Training& alone, int steps = 2) {
  Crew one(alone, {10, {}});
  std::string where;
  for (int step = 0; step < steps; ++step) {
    const StepResult expected = one.step(), found = crew.step();
    EXPECT_NEAR(found.loss, expected.loss, kTolerance * expected.loss) << "step " << step;
    EXPECT_NEAR(found.gradient_norm, expected.gradient_norm, kTolerance * expected.gradient_norm)
        << "step " << step;
    if (step == 0) {
      EXPECT_LT(largest_error(crew.gradients(), one.gradients(), where), kTolerance) << where;
    }
  }
}

inline void expect_same_training(const Training& training, const Model& model, int steps = 2) {
  Crew crew(training, {10, {}});
  expect_same_training(crew, training_of(model, alone(training.plan)), steps);
}

inline void expect_as_one_rank(const Plan& plan, const Model& model) {
  ASSERT_TRUE(runs(plan, model));
  expect_same_training(training_of(model, plan), model);
}

// Twelve steps at a rate at which the loss falls by a twentieth.
inline void expect_same_losses(Plan plan, const Model& model, float rate = 2e-2F) {
  plan.global_batch = 16;
  Training training = training_of(model, plan), reference = training_of(model, alone(plan));
  training.rate = reference.rate = rate;
  Crew crew(training, {10, {}}), one(reference, {10, {}});
  double first = 0, last = 0;
  for (int step = 0; step < 12; ++step) {
    last = one.step().loss;
    if (step == 0) first = last;
    EXPECT_NEAR(crew.step().loss, last, 2e-4 * last) << "step " << step;
  }
  EXPECT_LT(last, 0.95 * first);
}

}  // namespace rehearse
