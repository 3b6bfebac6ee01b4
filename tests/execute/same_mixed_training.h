// Does training in 16 bits give the results of one rank in 16 bits?
//
// The allowed difference of two such runs: bf16 has 8 significant bits, fp16 11. A rounding changes a number
// by at most a share u = 2^-8 or 2^-11 of it. R independent roundings in sequence add up to sqrt(R) u, and to
// sqrt(2 R) u between two runs that round differently.
#pragma once

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/short_float.h"
#include "same_training.h"

namespace rehearse {

constexpr double kClip = 0.1;  // below the norm of these networks' gradients

inline Plan in_16_bits(Plan plan, Precision precision, Recipe recipe = Recipe::megatron) {
  plan.precision = precision;
  plan.recipe = recipe;
  return plan;
}

inline double rounding_of(Precision precision) {
  return precision == Precision::fp16 ? 0x1p-11 : 0x1p-8;
}

inline double apart(double roundings, Precision precision) {
  return std::sqrt(2 * roundings) * rounding_of(precision);
}

// Between two gradients of a parameter: each of `sums` parts, tied tables two of a microbatch, is added to
// those before and rounded.
inline double apart_when_summed(const Plan& plan) {
  return apart(static_cast<double>(2 * plan.global_batch + plan.dp), plan.precision);
}

// The same when every result on the way from the tokens to the loss and back is rounded elsewhere.
inline double apart_when_computed(const Training& training, Precision precision) {
  double kernels = 0;
  for (const std::vector<Repeated>& part : training.work.parts)
    for (const Repeated& repeated : part) {
      const Block& block = training.work.blocks[static_cast<std::size_t>(repeated.block)];
      const std::size_t each = block.forward.size() + block.backward_input.size();
      kernels += static_cast<double>(repeated.repeats) * static_cast<double>(each);
    }
  return apart(kernels + static_cast<double>(2 * training.plan.global_batch), precision);
}

// Split tensors are summed elsewhere, in GEMMs or between microbatches. Without a split, numbers differ only
// in the order of fp32 sums. Experts of other ranks multiply other rows at once, and OpenBLAS sums those in
// another order on some processors.
inline double gradients_apart(const Training& one, const Plan& plan) {
  const StateTypes types = state_types(plan);
  const bool tied_part_by_part = one.model.tied_embeddings && types.fresh_gradient != types.gradient;
  if (plan.tp * plan.cp * plan.ep > 1) return apart_when_computed(one, plan.precision);
  if (kernels::is_short(types.gradient) || kernels::is_short(types.wire) || tied_part_by_part)
    return apart_when_summed(plan);
  return kTolerance;
}

// A loss is a mean over tokens of functions of their logits, which are below 1 here.
inline double losses_apart(const Training& one, Precision precision) {
  return apart_when_computed(one, precision) /
         std::sqrt(static_cast<double>(one.plan.global_batch * one.plan.seq));
}

// A loss of these networks that is multiplied by this has gradients that no 16 bits are too few for.
constexpr double kLossScale = 4096;

inline Training in_16_bits(const Model& model, const Plan& plan, int buckets = 3) {
  Training training = training_of(model, plan, buckets);
  training.loss_scaling.initial_loss_scale = kLossScale;
  return training;
}

// Adam's first step moves a weight by the rate in its gradient's direction. Checked after it, where the
// direction is certain: where the gradient is larger than the difference of two runs.
inline void expect_same_step(const RankPool& rank_pool, const RankPool& one, const Training& training,
                             double near) {
  const WholeTensors found = rank_pool.master_weights(), expected = one.master_weights();
  const WholeTensors gradients = one.gradients();
  for (const auto& [name, gradient] : gradients) {
    const double size = largest_beside(name, gradients);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      if (std::abs(double{gradient[i]}) <= near * size) continue;
      ASSERT_NEAR(found.at(name)[i], expected.at(name)[i], 0.02 * double{training.rate}) << name << " " << i;
    }
  }
}

// In the second step, some weights were rounded up that were rounded down in the other run. Some, with
// gradients of almost 0, moved by the rate in the other direction. In total the runs differ by about the
// rounding to bf16 (1 % of these weights of 0.02 moved by 0.002: 2^-7 of their root mean square).
inline void expect_same_training_in_16_bits(RankPool& rank_pool, const Training& training) {
  const Training alone = in_16_bits(training.model, rehearse::alone(training.plan), 2);
  RankPool one(alone, {10, {}});
  const double near = gradients_apart(alone, training.plan),
               far = apart_when_computed(alone, Precision::bf16);
  ASSERT_LT(far, 1.0 / 8) << "a lost microbatch would not be seen";
  std::string where;
  for (int step = 0; step < 2; ++step) {
    const StepResult expected = one.step(), found = rank_pool.step();
    EXPECT_FALSE(found.skipped || expected.skipped);
    EXPECT_NEAR(found.loss, expected.loss, step == 0 ? near : losses_apart(alone, training.plan.precision))
        << "step " << step;
    EXPECT_NEAR(found.gradient_norm, expected.gradient_norm,
                (step == 0 ? near : far) * expected.gradient_norm);
    EXPECT_LT(largest_error(rank_pool.gradients(), one.gradients(), where), step == 0 ? near : far)
        << where << ", step " << step;
    if (step == 0 && state_types(training.plan).has_master) expect_same_step(rank_pool, one, training, near);
  }
}

inline void expect_same_training_in_16_bits(const Model& model, const Plan& plan) {
  ASSERT_TRUE(broken_rules(plan, model, plan.gpus()).empty());
  const Training training = in_16_bits(model, plan);
  RankPool rank_pool(training, {10, {}});
  expect_same_training_in_16_bits(rank_pool, training);
}

struct Mixed {
  Plan plan;
  bool tied = false;

  Model model() const { return tied ? tiny_gpt() : tiny_llama(); }
};

inline std::string name_of(const Mixed& mixed) {
  const Plan& plan = mixed.plan;
  std::string name = to_string(plan.recipe) + "_" + to_string(plan.schedule) + "_tp" +
                     std::to_string(plan.tp) + "_pp" + std::to_string(plan.pp) + "_dp" +
                     std::to_string(plan.dp) + "_zero" + std::to_string(plan.zero) + "_sums_" +
                     to_string(plan.grad_reduce) + (mixed.tied ? "_gpt" : "_llama");
  std::ranges::replace(name, '-', '_');
  return name;
}

inline void PrintTo(const Mixed& mixed, std::ostream* out) {
  *out << name_of(mixed);
}

// Every 61st of all that fit eight ranks: a prime, so that all choices meet each other.
inline std::vector<Mixed> mixes(Precision precision, const std::vector<Recipe>& recipes) {
  constexpr int kEvery = 61;
  std::vector<Mixed> some;
  int legal = 0;
  for (const ScheduleName schedule : {ScheduleName::one_f_one_b, ScheduleName::interleaved,
                                      ScheduleName::zb_h1, ScheduleName::zb_v, ScheduleName::gpipe})
    for (const int tp : {1, 2, 4})
      for (const int pp : {1, 2, 4})
        for (const int dp : {1, 2, 4})
          for (const int zero : {0, 1, 2, 3})
            for (const Precision wire : {Precision::fp32, precision})
              for (const Recipe recipe : recipes)
                for (const bool tied : {false, true}) {
                  Mixed mixed{in_16_bits(plan_of(schedule, tp, pp, dp), precision, recipe), tied};
                  Plan& plan = mixed.plan;
                  plan.zero = zero;
                  plan.grad_reduce = wire;
                  plan.clip_grad = kClip;
                  plan.sequence_parallel = tp > 1;
                  plan.framework = Framework::torchtitan;
                  const bool one_replica = dp == 1 && (zero > 0 || wire == precision);
                  if (plan.gpus() > 8 || one_replica || !not_executable(mixed.model(), plan).empty() ||
                      !broken_rules(plan, mixed.model(), plan.gpus()).empty())
                    continue;
                  if (legal++ % kEvery == 0) some.push_back(mixed);
                }
  return some;
}

}  // namespace rehearse
