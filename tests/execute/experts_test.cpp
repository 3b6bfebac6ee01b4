// Layers with experts: every way to divide them over ranks gives the results of one rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "same_training.h"
#include "split.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

constexpr double kClip = 0.1;  // below the norm of these networks' gradients

Plan plan_of(const Split& split) {
  Plan plan = plan_of(split.schedule, split.tp, split.pp, split.dp);
  plan.cp = split.cp;
  plan.ep = split.ep;
  plan.etp = split.etp;
  plan.zero = split.zero;
  plan.framework = split.zero > 1 && split.pp > 1 ? Framework::torchtitan : plan.framework;
  plan.sequence_parallel = split.tp > 1;
  // A chunk of 2 positions is half a round of turns.
  plan.seq = split.cp > 1 && split.tp == 1 ? 4 * split.cp : 16;
  plan.micro_batch = split.dp > 2 ? 1 : 2;
  plan.clip_grad = kClip;
  return plan;
}

// Without schedules and ZeRO, all that make up `ranks` ranks and divide the experts or the ranks' rows.
std::vector<Split> splits(int ranks) {
  std::vector<Split> all;
  for (const int tp : {1, 2, 4})
    for (const int cp : {1, 2})
      for (const int pp : {1, 2})
        for (const int ep : {1, 2, 4, 8})
          for (const int etp : {1, 2, 4}) {
            if (ranks % (tp * cp * pp) != 0) continue;
            const Split split{ScheduleName::one_f_one_b, tp, cp, pp, ranks / (tp * cp * pp), ep, etp};
            if (runs(plan_of(split), tiny_mixtral())) all.push_back(split);
          }
  return all;
}

// Splits of eight ranks, other schedules and ZeRO that the splits of four do not include.
std::vector<Split> others() {
  using enum ScheduleName;
  return {{one_f_one_b, 1, 1, 1, 8, 8},
          {one_f_one_b, 1, 1, 1, 8, 2, 2},
          {one_f_one_b, 2, 1, 1, 4, 8},
          {one_f_one_b, 2, 2, 1, 2, 2, 4},
          {one_f_one_b, 4, 1, 1, 2, 4, 1},
          {one_f_one_b, 1, 2, 2, 2, 4},
          {one_f_one_b, 2, 2, 2, 1, 2, 2},
          {gpipe, 1, 1, 2, 2, 2},
          {interleaved, 2, 1, 2, 2, 2, 2},
          {interleaved, 1, 1, 2, 4, 4},
          {zb_h1, 1, 2, 2, 2, 2},
          {zb_v, 2, 1, 2, 1, 2},
          {one_f_one_b, 2, 1, 1, 1, 1, 1, 1},
          {one_f_one_b, 2, 1, 1, 1, 1, 1, 2},
          {one_f_one_b, 2, 1, 1, 1, 1, 1, 3},
          {one_f_one_b, 1, 1, 1, 4, 2, 1, 1},
          {one_f_one_b, 1, 1, 1, 4, 2, 1, 2},
          {one_f_one_b, 1, 1, 1, 4, 4, 1, 3},
          {one_f_one_b, 2, 2, 1, 2, 2, 2, 2},
          {one_f_one_b, 2, 2, 1, 2, 2, 1, 3},
          {gpipe, 1, 1, 2, 4, 2, 1, 2},
          {interleaved, 1, 1, 2, 4, 2, 2, 3},
          {zb_h1, 1, 1, 2, 4, 2, 1, 3}};
}

std::vector<Split> all_splits() {
  std::vector<Split> all = others();
  for (const int ranks : {2, 4}) {
    const std::vector<Split> more = splits(ranks);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

class ExpertSplits : public testing::TestWithParam<Split> {};

TEST_P(ExpertSplits, TrainAsOneRankDoes) {
  const Plan plan = plan_of(GetParam());
  ASSERT_TRUE(runs(plan, tiny_mixtral()));
  for (const Model& model : {tiny_mixtral(), tiny_shared_experts()}) {
    SCOPED_TRACE(model.name);
    if (runs(plan, model)) expect_same_training(training_of(model, plan), model);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExpertSplits, testing::ValuesIn(all_splits()),
                         [](const auto& split) { return name_of(split.param); });

TEST(Experts, FollowTheSameLossesDown) {
  Plan plan = plan_of({ScheduleName::interleaved, 1, 1, 2, 2, 2});
  plan.clip_grad = 0;
  for (const Model& model : {tiny_mixtral(), tiny_shared_experts()}) {
    Training training = training_of(model, plan), reference = training_of(model, alone(plan));
    training.rate = reference.rate = 2e-2F;
    RankPool rank_pool(training, {10, {}}), one(reference, {10, {}});
    double first = 0, last = 0;
    for (int step = 0; step < 10; ++step) {
      last = one.step().loss;
      if (step == 0) first = last;
      EXPECT_NEAR(rank_pool.step().loss, last, 2e-4 * last) << model.name << " step " << step;
    }
    EXPECT_LT(last, 0.95 * first);
  }
}

TEST(Experts, TrainAlikeWhatIsRunAgain) {
  using enum RecomputeModule;
  Plan plan = plan_of({ScheduleName::zb_h1, 2, 1, 2, 2, 2});
  const auto expect_the_same = [&](const std::string& what) {
    ASSERT_TRUE(runs(plan, tiny_shared_experts()));
    for (const Model& model : {tiny_mixtral(), tiny_shared_experts()}) {
      SCOPED_TRACE(model.name + " " + what);
      if (runs(plan, model)) expect_same_training(training_of(model, plan), model);
    }
  };
  for (const Recompute recompute : {Recompute::full, Recompute::op}) {
    plan.recompute = recompute;
    expect_the_same(to_string(recompute));
  }
  plan.recompute = Recompute::selective;
  for (const std::vector<RecomputeModule>& modules :
       {std::vector{moe_act}, std::vector{moe}, std::vector{core_attn, layernorm, moe_act, shared_experts}}) {
    plan.recompute_modules = modules;
    expect_the_same(to_string(modules.back()));
  }
}

// Sorted like the input, rows of other experts return to their sources.
TEST(Experts, DoNotTrainAlikeWhenRowsReturnInTheWrongOrder) {
  const Plan plan = plan_of({ScheduleName::one_f_one_b, 1, 1, 1, 2, 2});
  const Model model = tiny_mixtral();
  Training training = training_of(model, plan);
  for (Block& block : training.work.blocks)
    for (Kernel& kernel : block.forward)
      if (is_one_of(kernel, Pointwise::rows_by_source)) kernel.what = Pointwise::rows_by_expert;
  RankPool rank_pool(training, {10, {}}), one(training_of(model, alone(plan)), {10, {}});
  one.step();
  rank_pool.step();
  std::string where;
  EXPECT_GT(largest_error(rank_pool.gradients(), one.gradients(), where), 0.01);
}

// The mean over all tokens: an expert's gradient is no larger for having come from more ranks.
TEST(Experts, NormsCountEveryParameterOnce) {
  const Model model = tiny_shared_experts();
  for (const Split& split : {Split{ScheduleName::one_f_one_b, 2, 1, 1, 4, 2, 2, 0},
                             Split{ScheduleName::one_f_one_b, 2, 1, 1, 2, 1, 1, 1}}) {
    const Plan plan = plan_of(split);
    RankPool rank_pool(training_of(model, plan), {10, {}});
    const double found = rank_pool.step().gradient_norm;
    double squares = 0;
    for (const auto& [name, gradient] : rank_pool.gradients())
      for (const float element : gradient) squares += double{element} * double{element};
    EXPECT_NEAR(found, std::sqrt(squares), kTolerance * found);
  }
}

std::string refusal(const Model& model, const Plan& plan) {
  std::string all;
  for (const Violation& broken : not_executable(model, plan))
    all += broken.pointer + ": " + broken.rule + " (" + broken.values + "); " + broken.nearest + "\n";
  return all;
}

TEST(Experts, AreRefusedWhereTurnsAreNotWhatIsSimulated) {
  Model model = tiny_mixtral();
  Plan plan = plan_of({ScheduleName::one_f_one_b, 1, 1, 1, 2, 2});
  EXPECT_EQ(refusal(model, plan), "");
  plan.moe_capacity = 1;
  EXPECT_EQ(refusal(model, plan), "");
  plan.moe_capacity = 1.5;
  EXPECT_THAT(refusal(model, plan), HasSubstr("moe_capacity: experts receive equal loads"));
  plan.moe_capacity = 0;
  plan.moe_imbalance = 2;
  EXPECT_THAT(refusal(model, plan), HasSubstr("moe_imbalance: experts receive equal loads"));
  plan.moe_imbalance = 1;
  plan.core_release = 12;
  EXPECT_THAT(refusal(model, plan), HasSubstr("core_release: router weights applied after combine"));
  plan.core_release = 0;
  plan.fused_router = false;
  EXPECT_THAT(refusal(model, plan), HasSubstr("fused_router"));
  plan.fused_router = true;
  model.experts->linear_bias = true;
  EXPECT_THAT(refusal(model, plan), HasSubstr("model: biases and clamped activations of experts"));
  model.experts->linear_bias = false;
  model.attention_sinks = true;
  EXPECT_THAT(refusal(model, plan), HasSubstr("model: attention sinks"));
  model.attention_sinks = false;
  model.mtp_layers = 2;
  EXPECT_THAT(refusal(model, plan), HasSubstr("at most one MTP layer can be executed (mtp_layers = 2)"));
  model.mtp_layers = 0;
  EXPECT_EQ(refusal(model, plan), "");
  model.yarn = true;
  EXPECT_THAT(refusal(model, plan), HasSubstr("model: rotary positions with YaRN scaling"));
  model.latent = LatentAttention{};
  EXPECT_EQ(refusal(model, plan), "") << "which are one kernel here";
  model.latent->rope_head_dim = 3;
  EXPECT_THAT(refusal(model, plan), HasSubstr("model: rotary positions need an even head dimension"));
  plan.fused_attention = false;
  EXPECT_THAT(refusal(model, plan), HasSubstr("fused_attention: latent attention"));
}

TEST(Experts, AreRefusedWhereARanksPositionsDoNotVisitAllEquallyOften) {
  Plan plan = plan_of({ScheduleName::one_f_one_b, 2, 2, 1, 1, 2});
  EXPECT_EQ(refusal(tiny_mixtral(), plan), "");
  plan.seq = 24;  // 6 positions a rank make 12 choices among 8 experts
  EXPECT_EQ(refusal(tiny_mixtral(), plan),
            "seq: the tokens of a sequence on a rank must divide evenly over the experts (round-robin "
            "routing) (seq = 24 over 4 ranks, experts = 8, top-k = 2); 16 or 32\n");
  EXPECT_EQ(refusal(tiny_shared_experts(), plan), "");
}

}  // namespace
}  // namespace rehearse
