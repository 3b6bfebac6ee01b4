// Multi-token prediction trains as on one rank, whoever holds the table that embeds the MTP layer.
#include "same_training.h"
#include "split.h"

namespace rehearse {
namespace {

TEST(FurtherToken, TrainsAsOnOneRank) {
  using enum ScheduleName;
  for (const Split& split : {Split{one_f_one_b, 1, 1, 1, 2},
                             {one_f_one_b, 2, 1, 1, 1},
                             {one_f_one_b, 1, 1, 2, 2, 2},
                             {gpipe, 2, 1, 2, 1},
                             {interleaved, 1, 1, 2, 2, 2},
                             {zb_h1, 2, 1, 2, 2, 2},
                             {zb_v, 1, 1, 2, 1},
                             {one_f_one_b, 1, 2, 2, 1},
                             {one_f_one_b, 2, 2, 1, 1},
                             {one_f_one_b, 1, 1, 1, 2, 1, 1, 1},
                             {one_f_one_b, 2, 1, 2, 2, 2, 1, 1}}) {
    SCOPED_TRACE(name_of(split));
    expect_as_one_rank(plan_across(split), tiny_further_token());
  }
}

TEST(FurtherToken, TrainsAlikeWhereTablesAreTied) {
  Model model = tiny_further_token();
  model.experts.reset();
  model.tied_embeddings = true;
  for (const int pp : {1, 2, 4}) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, 2, pp, 1);
    plan.micro_batch = 2;
    SCOPED_TRACE(pp);
    expect_as_one_rank(plan, model);
  }
}

TEST(FurtherToken, TrainsAlikeWithoutSequenceParallelismAndWhereLayersRunAgain) {
  Model model = tiny_further_token();
  model.experts.reset();
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    Plan plan = plan_of(ScheduleName::zb_h1, 2, 2, 1);
    plan.recompute = recompute;
    SCOPED_TRACE(to_string(recompute));
    expect_as_one_rank(plan, model);
  }
}

// The loss shown is that of the next token; the MTP layer's loss changes the training.
TEST(FurtherToken, IsTrainedForBesideTheNext) {
  const Plan plan = alone(plan_of(ScheduleName::one_f_one_b, 1, 1, 1));
  Model without = tiny_further_token();
  without.mtp_layers = 0;
  Training both = training_of(tiny_further_token(), plan), next = training_of(without, plan);
  both.text = next.text = std::string(10, '\x07');
  RankPool with_module(both, {10, {}}), without_module(next, {10, {}});
  const double loss = without_module.step().loss;
  EXPECT_NEAR(with_module.step().loss, loss, kTolerance * loss);
  const WholeTensors gradients = with_module.gradients(), plain = without_module.gradients();
  EXPECT_TRUE(gradients.contains("mtp.joined_projection_weight"));
  EXPECT_FALSE(plain.contains("mtp.joined_projection_weight"));
  EXPECT_NE(gradients.at("head.head_weight"), plain.at("head.head_weight"));
}

TEST(FurtherToken, IsLearnedAsFastAsOnOneRank) {
  expect_same_losses(plan_across({ScheduleName::one_f_one_b, 2, 1, 2, 2, 2}), tiny_further_token());
}

}  // namespace
}  // namespace rehearse
