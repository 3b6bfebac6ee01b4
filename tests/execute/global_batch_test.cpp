// However a global batch is divided into microbatches, its loss and gradients are the same.
#include <gtest/gtest.h>

#include <utility>

#include "same_training.h"

namespace rehearse {
namespace {

// The reference has one sequence a microbatch.
void expect_same_global_batch(const Model& model, const Plan& plan, std::int64_t micro_batch) {
  Plan divided = plan, one = alone(plan);
  divided.micro_batch = micro_batch;
  one.micro_batch = 1;
  SCOPED_TRACE(testing::Message() << model.name << ", mbs " << micro_batch << ", tp " << plan.tp << ", cp "
                                  << plan.cp << ", pp " << plan.pp << ", dp " << plan.dp);
  ASSERT_TRUE(runs(divided, model));
  RankPool rank_pool(training_of(model, divided), {10, {}});
  expect_same_training(rank_pool, training_of(model, one));
}

TEST(GlobalBatch, HoldsTheSameSequencesForEveryMicrobatchSize) {
  Model dropped = tiny_gpt();
  dropped.dropout = true;
  for (const Model& model : {dropped, tiny_gpt(), tiny_llama(), tiny_mixtral(), tiny_hybrid(), tiny_latent(),
                             tiny_further_token()})
    for (const std::int64_t micro_batch : {1, 2, 4, 8})
      for (const auto& [pp, dp] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 4}}) {
        if (micro_batch * dp > 8) continue;
        for (const bool fused : {true, false}) {
          if (!fused && !model.dropout) continue;
          Plan plan = plan_of(ScheduleName::one_f_one_b, 1, pp, dp);
          plan.fused_attention = fused;
          expect_same_global_batch(model, plan, micro_batch);
        }
      }
}

TEST(GlobalBatch, HoldsTheSameSequencesForEveryMicrobatchSizeOfRanksThatShareThem) {
  Model model = tiny_gpt();
  model.dropout = true;
  for (const std::int64_t micro_batch : {1, 2, 4})
    for (const auto& [tp, cp] : {std::pair{2, 1}, {1, 2}, {2, 2}, {1, 4}})
      for (const bool sequence_parallel : {false, true}) {
        Plan plan = plan_of(ScheduleName::one_f_one_b, tp, 1, 2);
        plan.cp = cp;
        plan.sequence_parallel = sequence_parallel && tp > 1;
        expect_same_global_batch(model, plan, micro_batch);
      }
}

TEST(GlobalBatch, OfATextHoldsTheSameSequencesForEveryMicrobatchSize) {
  Model model = tiny_gpt();
  model.dropout = true;
  Training one = training_of(model, plan_of(ScheduleName::one_f_one_b, 1, 1, 1));
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 2, 2);
  plan.micro_batch = 2;
  Training divided = training_of(model, plan);
  one.text = divided.text = "- + * , ! # $ % & ' ( ) + - * ,";  // of bytes below 48, which the model knows
  RankPool rank_pool(divided, {10, {}});
  expect_same_training(rank_pool, one);
}

}  // namespace
}  // namespace rehearse
