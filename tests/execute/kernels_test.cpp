// Recompute, and a loss in one kernel or many, do not change the results.
#include "same_training.h"

namespace rehearse {
namespace {

TEST(Recompute, TrainsAsOneRankThatKeepsAll) {
  for (const Recompute recompute : {Recompute::full, Recompute::selective, Recompute::op}) {
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

// 4 layers in groups, of which the last may be smaller, cut by stages and by gradient buckets.
TEST(Recompute, OfGroupsOfLayersTrainsAsOneRankThatKeepsAll) {
  for (const ScheduleName schedule :
       {ScheduleName::gpipe, ScheduleName::one_f_one_b, ScheduleName::interleaved, ScheduleName::zb_h1}) {
    for (const std::int64_t layers : {2, 3, 4}) {
      for (const int zero : {0, 2}) {
        const int pp = schedule == ScheduleName::interleaved ? 2 : 1;
        Plan plan = plan_of(schedule, 2, pp, 2);
        if (zero > 1 && schedule == ScheduleName::interleaved) continue;
        plan.recompute = Recompute::full;
        plan.recompute_layers = layers;
        plan.zero = zero;
        SCOPED_TRACE(testing::Message() << to_string(schedule) << " " << layers << " zero " << zero);
        ASSERT_TRUE(runs(plan, tiny_llama()));
        expect_same_training(training_of(tiny_llama(), plan, 3), tiny_llama());
      }
    }
  }
}

TEST(Recompute, OfGroupsOfLayersTrainsAlikeWithDropoutExpertsAndActivationsAtTheHost) {
  Model dropped = tiny_gpt();
  dropped.dropout = true;
  for (const Model& model : {dropped, tiny_shared_experts(), tiny_latent()}) {
    Plan plan = plan_of(model.latent ? ScheduleName::gpipe : ScheduleName::one_f_one_b, 1, 1, 2);
    plan.ep = model.experts ? 2 : 1;
    plan.offload = model.latent ? Offload::activations : Offload::none;
    plan.recompute = Recompute::full;
    plan.recompute_layers = 4;
    SCOPED_TRACE(model.name);
    ASSERT_TRUE(runs(plan, model));
    expect_same_training(training_of(model, plan), model);
  }
}

TEST(Loss, InOneKernelForEachOperationTrainsAlike) {
  for (const auto& [tp, pp] : {std::pair{1, 1}, {2, 1}, {2, 2}}) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, tp, pp, 1);
    plan.fused_cross_entropy = false;
    for (const Model& model : {tiny_gpt(), tiny_llama()}) {
      SCOPED_TRACE(model.name);
      expect_same_training(training_of(model, plan), model);
    }
  }
}

TEST(Loss, OfPyTorchTrainsAlikeFusedOrNot) {
  for (const bool fused : {false, true}) {
    for (const auto& [tp, dp] : {std::pair{1, 1}, {1, 2}, {2, 1}}) {
      Plan plan = plan_of(ScheduleName::one_f_one_b, tp, 2, dp);
      plan.framework = Framework::torchtitan;
      plan.fused_cross_entropy = fused;
      SCOPED_TRACE(testing::Message() << "fused " << fused << " tp " << tp << " dp " << dp);
      expect_same_training(training_of(tiny_gpt(), plan), tiny_gpt());
    }
  }
}

TEST(SquaredRelu, TrainsAsOneRankDoes) {
  Model model = tiny_gpt();
  model.squared_relu = true;
  for (const auto& [tp, pp] : {std::pair{2, 1}, {1, 2}, {2, 2}}) {
    SCOPED_TRACE(testing::Message() << "tp " << tp << " pp " << pp);
    expect_same_training(training_of(model, plan_of(ScheduleName::one_f_one_b, tp, pp, 1)), model);
  }
}

// PyTorch keeps the activations that the forward pass gathered along the sequence.
TEST(Recompute, TrainsAsOneRankWhereGatheredInputsStay) {
  for (const Recompute recompute : kRecomputes) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, 2, 2, 1);
    plan.framework = Framework::torchtitan;
    plan.sequence_parallel = true;
    plan.recompute = recompute;
    SCOPED_TRACE(to_string(recompute));
    expect_same_training(training_of(tiny_llama(), plan), tiny_llama());
  }
}

}  // namespace
}  // namespace rehearse
