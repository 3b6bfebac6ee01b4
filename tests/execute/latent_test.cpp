// Latent attention, and experts of a latent width, train as one rank does, however they are divided and run
// again.
#include "same_training.h"
#include "split.h"

namespace rehearse {
namespace {

TEST(LatentAttention, TrainsAsOneRankDoes) {
  expect_as_one_rank_however_divided(tiny_latent());
}

TEST(LatentAttention, TrainsAlikeWhereQueriesAreNotCompressed) {
  Model model = tiny_latent();
  model.latent->q_rank = 0;
  for (const bool sequence_parallel : {false, true}) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, 2, 2, 1);
    plan.sequence_parallel = sequence_parallel;
    plan.micro_batch = 2;
    expect_as_one_rank(plan, model);
  }
}

TEST(LatentAttention, TrainsAlikeWhateverContextParallelRanksExchange) {
  for (const ContextExchange exchange :
       {ContextExchange::ring, ContextExchange::gather, ContextExchange::all_to_all}) {
    for (const auto& [tp, cp] : {std::tuple{1, 2}, {2, 2}, {1, 4}}) {
      Plan plan = plan_of(ScheduleName::one_f_one_b, tp, 1, 1);
      plan.cp = cp;
      plan.cp_exchange = exchange;
      plan.sequence_parallel = tp > 1;
      plan.micro_batch = 2;
      SCOPED_TRACE(testing::Message() << to_string(exchange) << " tp " << tp << " cp " << cp);
      expect_as_one_rank(plan, tiny_latent());
    }
  }
}

TEST(LatentAttention, TrainsAlikeWhateverContextParallelRanksRunAgain) {
  for (const ContextExchange exchange :
       {ContextExchange::ring, ContextExchange::gather, ContextExchange::all_to_all}) {
    for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
      Plan plan = plan_of(ScheduleName::zb_h1, 1, 2, 1);
      plan.cp = 2;
      plan.cp_exchange = exchange;
      plan.recompute = recompute;
      if (recompute == Recompute::selective)
        plan.recompute_modules = {RecomputeModule::core_attn, RecomputeModule::mla_up_proj};
      SCOPED_TRACE(testing::Message() << to_string(exchange) << " " << to_string(recompute));
      expect_as_one_rank(plan, tiny_latent());
    }
  }
}

TEST(LatentAttention, TrainsAlikeWhereItRunsAgain) {
  for (const std::vector<RecomputeModule>& modules :
       {std::vector{RecomputeModule::mla_up_proj}, std::vector{RecomputeModule::core_attn},
        std::vector{RecomputeModule::mla_up_proj, RecomputeModule::core_attn, RecomputeModule::layernorm,
                    RecomputeModule::mlp}}) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, 2, 1, 2);
    plan.sequence_parallel = true;
    plan.recompute = Recompute::selective;
    plan.recompute_modules = modules;
    plan.zero = 1;
    SCOPED_TRACE(testing::Message() << modules.size() << " " << static_cast<int>(modules.front()));
    expect_as_one_rank(plan, tiny_latent());
  }
  Plan plan = plan_of(ScheduleName::zb_h1, 2, 2, 1);
  plan.recompute = Recompute::full;
  expect_as_one_rank(plan, tiny_latent());
}

// Beside experts, one of them shared, whose router has a bias.
TEST(LatentAttention, TrainsAlikeWithExperts) {
  for (const Split& split : {Split{ScheduleName::one_f_one_b, 1, 1, 1, 2, 2},
                             {ScheduleName::one_f_one_b, 2, 1, 2, 2, 2},
                             {ScheduleName::zb_h1, 1, 2, 2, 1, 2},
                             {ScheduleName::interleaved, 2, 1, 2, 2, 4},
                             {ScheduleName::one_f_one_b, 1, 1, 1, 4, 2, 1, 3}}) {
    SCOPED_TRACE(name_of(split));
    expect_as_one_rank(plan_across(split), tiny_latent_of_experts());
  }
}

TEST(LatentAttention, LearnsAsFastAsOneRank) {
  constexpr float kRate = 5e-3F;  // at four times that, rounding alone drives them apart
  expect_same_losses(plan_of(ScheduleName::one_f_one_b, 2, 2, 2), tiny_latent(), kRate);
}

TEST(LatentExperts, TrainAsOnOneRank) {
  Model model = tiny_mixtral();
  model.experts->latent = 12;
  for (const Split& split : {Split{ScheduleName::one_f_one_b, 1, 1, 1, 2, 2},
                             {ScheduleName::one_f_one_b, 2, 1, 2, 2, 2},
                             {ScheduleName::one_f_one_b, 2, 1, 1, 2, 2, 2},
                             {ScheduleName::zb_h1, 1, 2, 2, 2, 4},
                             {ScheduleName::one_f_one_b, 1, 1, 1, 4, 2, 1, 3}}) {
    Plan plan = plan_across(split);
    plan.seq = 16;
    SCOPED_TRACE(name_of(split));
    expect_as_one_rank(plan, model);
  }
}

}  // namespace
}  // namespace rehearse
