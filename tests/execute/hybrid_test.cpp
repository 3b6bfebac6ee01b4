// Hybrid models train as one rank does, however their state spaces are divided and recomputed.
#include "same_training.h"

namespace rehearse {
namespace {

TEST(Hybrid, TrainsAsOneRankDoes) {
  expect_as_one_rank_however_divided(tiny_hybrid());
}

TEST(Hybrid, TrainsAlikeWithExperts) {
  for (const auto& [tp, pp, ep] : {std::tuple{1, 1, 2}, {2, 1, 2}, {1, 2, 2}, {2, 2, 2}}) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, tp, pp, ep);
    plan.ep = ep;
    plan.sequence_parallel = tp > 1;
    SCOPED_TRACE(testing::Message() << "tp " << tp << " pp " << pp << " ep " << ep);
    ASSERT_TRUE(runs(plan, tiny_hybrid_of_experts()));
    expect_same_training(training_of(tiny_hybrid_of_experts(), plan), tiny_hybrid_of_experts());
  }
}

TEST(Hybrid, TrainsAlikeWhereLayersRunAgainAndOptimizersMayBeSharded) {
  for (const Recompute recompute : {Recompute::full, Recompute::selective}) {
    for (const int zero : {0, 1}) {
      Plan plan = plan_of(ScheduleName::one_f_one_b, 2, 1, 2);
      plan.sequence_parallel = true;
      plan.recompute = recompute;
      plan.recompute_modules = recompute == Recompute::full
                                   ? Plan{}.recompute_modules
                                   : std::vector{RecomputeModule::layernorm, RecomputeModule::mlp};
      plan.zero = zero;
      SCOPED_TRACE(testing::Message() << to_string(recompute) << " zero " << zero);
      ASSERT_TRUE(runs(plan, tiny_hybrid()));
      expect_same_training(training_of(tiny_hybrid(), plan), tiny_hybrid());
    }
  }
}

TEST(Hybrid, TrainsAlikeInMicrobatchesOfSeveralSequences) {
  Plan plan = plan_of(ScheduleName::zb_h1, 2, 2, 1);
  plan.micro_batch = 2;
  ASSERT_TRUE(runs(plan, tiny_hybrid()));
  expect_same_training(training_of(tiny_hybrid(), plan), tiny_hybrid());
  Plan one = alone(plan);
  one.micro_batch = 1;
  RankPool rank_pool(training_of(tiny_hybrid(), plan), {10, {}}),
      apart(training_of(tiny_hybrid(), one), {10, {}});
  const double loss = apart.step().loss;
  EXPECT_NEAR(rank_pool.step().loss, loss, kTolerance * loss) << "sequences do not see each other";
  std::string where;
  EXPECT_LT(largest_error(rank_pool.gradients(), apart.gradients(), where), kTolerance) << where;
}

TEST(Hybrid, LearnsAsFastAsOneRank) {
  expect_same_losses(plan_of(ScheduleName::one_f_one_b, 2, 2, 2), tiny_hybrid());
}

TEST(Hybrid, TrainsAlikeWhereContextParallelRanksScanHeads) {
  for (const auto& [tp, cp, pp, dp] :
       {std::tuple{1, 2, 1, 1}, {1, 4, 1, 1}, {2, 2, 1, 1}, {1, 2, 2, 1}, {2, 2, 1, 2}}) {
    for (const int micro_batch : {1, 2}) {
      Plan plan = plan_of(ScheduleName::one_f_one_b, tp, pp, dp);
      plan.cp = cp;
      plan.micro_batch = micro_batch;
      plan.sequence_parallel = tp > 1;
      plan.zero = dp > 1 ? 1 : 0;
      SCOPED_TRACE(testing::Message()
                   << "tp " << tp << " cp " << cp << " pp " << pp << " of " << micro_batch);
      ASSERT_TRUE(runs(plan, tiny_hybrid()));
      expect_same_training(training_of(tiny_hybrid(), plan), tiny_hybrid());
    }
  }
}

TEST(Hybrid, TrainsAlikeWhateverContextParallelRanksExchangeAndRunAgain) {
  for (const ContextExchange exchange :
       {ContextExchange::ring, ContextExchange::gather, ContextExchange::all_to_all}) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      Plan plan = plan_of(ScheduleName::zb_h1, 1, 2, 1);
      plan.cp = 2;
      plan.cp_exchange = exchange;
      plan.recompute = recompute;
      SCOPED_TRACE(testing::Message() << to_string(exchange) << " " << to_string(recompute));
      expect_as_one_rank(plan, tiny_hybrid());
    }
  }
}

// Like Nemotron 3 Super: experts of a latent width, and an MTP layer with its own pattern.
TEST(Hybrid, TrainsAlikeWithAModuleOfItsOwnPattern) {
  Model model = tiny_hybrid_of_experts();
  model.experts->latent = 8;
  model.mtp_layers = 1;
  model.mtp_pattern = "*E";
  for (const auto& [tp, pp, dp] : {std::tuple{1, 1, 2}, {2, 2, 1}, {2, 1, 2}}) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, tp, pp, dp);
    plan.ep = 2;
    plan.sequence_parallel = tp > 1;
    plan.zero = dp > 1 ? 1 : 0;
    SCOPED_TRACE(testing::Message() << "tp " << tp << " pp " << pp << " dp " << dp);
    expect_as_one_rank(plan, model);
  }
}

TEST(Hybrid, TrainsAlikeWhereExpertsSeeALatentWidth) {
  Model narrow = tiny_hybrid_of_experts();
  narrow.experts->latent = 8;
  Plan plan = plan_of(ScheduleName::one_f_one_b, 2, 2, 2);
  plan.ep = 2;
  plan.sequence_parallel = true;
  ASSERT_TRUE(runs(plan, narrow));
  expect_same_training(training_of(narrow, plan), narrow);
}

}  // namespace
}  // namespace rehearse
