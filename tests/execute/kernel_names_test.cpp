// A kernel's name is a label: a run whose kernels are all called something else trains bit by bit alike.
#include <gtest/gtest.h>

#include <initializer_list>

#include "cases.h"

namespace rehearse {
namespace {

Training renamed(Training training) {
  for (Block& block : training.work.blocks)
    for (auto* kernels : {&block.forward, &block.recompute, &block.backward_input, &block.backward_weight})
      for (Kernel& kernel : *kernels) kernel.name = "x" + kernel.name + "x";
  return training;
}

void expect_no_difference(const Model& model, const Plan& plan) {
  SCOPED_TRACE(testing::Message() << model.name << ", tp " << plan.tp << ", cp " << plan.cp << ", ep "
                                  << plan.ep << ", fused attention " << plan.fused_attention);
  ASSERT_TRUE(runs(plan, model));
  const Training training = training_of(model, plan);
  RankPool rank_pool(training, {10, {}}), other(renamed(training), {10, {}});
  for (int step = 0; step < 2; ++step) {
    const StepResult expected = rank_pool.step(), found = other.step();
    EXPECT_EQ(found.loss, expected.loss) << "step " << step;
    EXPECT_EQ(found.gradient_norm, expected.gradient_norm) << "step " << step;
    std::string where;
    EXPECT_EQ(largest_error(other.gradients(), rank_pool.gradients(), where), 0) << where;
  }
}

Plan split(int tp, int cp, int ep) {
  Plan plan = plan_of(ScheduleName::one_f_one_b, tp, 1, ep);
  plan.cp = cp;
  plan.ep = ep;
  plan.sequence_parallel = tp > 1;
  plan.seq = 16;
  plan.clip_grad = 0.1;
  return plan;
}

TEST(KernelNames, DecideNothingInATrainingStep) {
  Model dropped = tiny_gpt();
  dropped.dropout = true;
  for (const bool fused : {true, false})
    for (const Model& model : {dropped, tiny_llama()}) {
      Plan plan = split(2, 1, 1);
      plan.seq = 8;
      plan.fused_attention = fused;
      plan.recompute = Recompute::selective;
      expect_no_difference(model, plan);
    }
  for (const Model& model : {tiny_hybrid(), tiny_latent(), tiny_further_token(), tiny_mixtral()})
    expect_no_difference(model, split(2, 1, 1));
  expect_no_difference(tiny_shared_experts(), split(1, 1, 2));
}

TEST(KernelNames, DecideNothingBetweenContextParallelRanks) {
  for (const ContextExchange exchange :
       {ContextExchange::ring, ContextExchange::gather, ContextExchange::all_to_all}) {
    Plan plan = split(1, 2, 1);
    plan.cp_exchange = exchange;
    expect_no_difference(tiny_llama(), plan);
  }
  expect_no_difference(tiny_hybrid(), split(1, 2, 1));
}

}  // namespace
}  // namespace rehearse
