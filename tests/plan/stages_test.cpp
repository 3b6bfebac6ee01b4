#include "plan/stages.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

TEST(Stages, LayersDivideEvenlyWithEmbeddingFirstAndHeadLast) {
  Model model;
  model.layers = 80;
  Plan plan;
  plan.pp = 4;
  plan.vpp = 5;
  const std::vector<Stage> stages = split_layers(model, plan);
  ASSERT_EQ(stages.size(), 20u);
  EXPECT_EQ(stages[7].first_layer, 28);
  EXPECT_EQ(stages[7].layers, 4);
  EXPECT_TRUE(stages.front().embedding);
  EXPECT_FALSE(stages.front().head);
  EXPECT_TRUE(stages.back().head);
}

TEST(Stages, ListedLayersAreTakenAsTheyStand) {
  Model model;
  model.layers = 10;
  Plan plan;
  plan.pp = 3;
  plan.layers_per_stage = {3, 4, 3};
  const std::vector<Stage> stages = split_layers(model, plan);
  EXPECT_EQ(stages[2].first_layer, 7);
  EXPECT_EQ(stages[1].layers, 4);
}

TEST(Stages, LoopingPlacementGoesRoundTheRanks) {
  Plan plan;
  plan.pp = 4;
  plan.vpp = 2;
  EXPECT_EQ(pipeline_rank_of(0, plan), 0);
  EXPECT_EQ(pipeline_rank_of(5, plan), 1);
}

TEST(Stages, VShapedPlacementReturnsToTheFirstRank) {
  Plan plan;
  plan.pp = 4;
  plan.vpp = 2;
  plan.schedule = ScheduleName::zb_v;
  EXPECT_EQ(pipeline_rank_of(3, plan), 3);
  EXPECT_EQ(pipeline_rank_of(4, plan), 3);
  EXPECT_EQ(pipeline_rank_of(7, plan), 0);
}

}  // namespace
}  // namespace rehearse
