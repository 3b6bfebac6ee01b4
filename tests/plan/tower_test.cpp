// Images in a step: parameters, FLOPs, bytes and rules of their tower.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "plan/limits.h"
#include "plan/units.h"
#include "plan/work/tower.h"
#include "tower_case.h"

namespace rehearse {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Tower, AddsTheParametersThatTheModelCounts) {
  for (const Model& model : all_towers()) {
    const double without = make_work(model, with_images(0)).parameters(0);
    EXPECT_EQ(without, double(count_parameters(model).total));
    EXPECT_EQ(make_work(model, with_images()).parameters(0) - without, double(count_tower(model.towers[0])));
  }
}

TEST(Tower, RunsOnTheFirstStageAheadOfTheEmbedding) {
  Plan plan = with_images();
  plan.pp = 2;
  const Work work = make_work(seeing(), plan);
  std::vector<BlockRole> roles;
  for (const Repeated& part : work.parts[0]) roles.push_back(work.blocks[std::size_t(part.block)].role);
  EXPECT_THAT(roles, testing::ElementsAre(BlockRole::tower, BlockRole::tower, BlockRole::tower,
                                          BlockRole::embedding, BlockRole::layer));
  EXPECT_EQ(work.parts[0][1].repeats, 3);
  for (const Repeated& part : work.parts[1])
    EXPECT_NE(work.blocks[std::size_t(part.block)].role, BlockRole::tower);
}

// The output of a block has as many elements as the input of the next block.
TEST(Tower, HandsOnWhatTheNextBlockReads) {
  for (const Model& model : all_towers()) {
    const Work work = make_work(model, with_images());
    const Block* before = nullptr;
    for (const Repeated& part : work.parts[0]) {
      const Block& block = work.blocks[std::size_t(part.block)];
      if (before != nullptr) {
        const double made = (*before).tensors[std::size_t(before->output)].elements;
        EXPECT_EQ(block.tensors[std::size_t(block.input)].elements, made) << block.name;
      }
      before = &block;
    }
  }
}

// GEMMs of patches, layers (4 h^2 + 2 h ffn) and two linear layers of the projector have 2 FLOPs for each
// weight and row. Attention over each image's patches has 4 h for each pair.
TEST(Tower, ForwardFlopsAreThoseOfItsGemmsAndOfAttentionWithinEachImage) {
  const Model model = seeing();
  const Plan plan = with_images(3);
  const double of_text = count_flops(make_work(model, with_images(0)), with_images(0)).forward;
  const double tokens = 3 * kImageTokens, rows = 4 * tokens, h = kTowerWidth, merged = 4 * h;
  const double gemms = 2 * rows * h * kNumbersOfAPatch + 3 * 2 * rows * (4 * h * h + 2 * h * 4 * h) +
                       2 * tokens * (merged * merged + merged * kTextWidth);
  const double attention = 3 * 4 * h * rows * (4 * kImageTokens);
  EXPECT_DOUBLE_EQ(count_flops(make_work(model, plan), plan).forward - of_text, gemms + attention);
}

// No kernel needs the gradient of a pixel.
TEST(Tower, BackwardFlopsLackTheGradientOfPixels) {
  const Model model = seeing();
  const FlopCount with = count_flops(make_work(model, with_images()), with_images()),
                  without = count_flops(make_work(model, with_images(0)), with_images(0));
  const double of_patches = 2.0 * 2 * 4 * kImageTokens * kTowerWidth * kNumbersOfAPatch;
  EXPECT_DOUBLE_EQ(with.backward - without.backward, 2 * (with.forward - without.forward) - of_patches);
}

TEST(Tower, FlopsOfTheModelDoNotDependOnTensorParallelism) {
  for (const Model& model : all_towers()) {
    Plan split = with_images();
    split.tp = 2;
    for (const bool sequence_parallel : {false, true}) {
      split.sequence_parallel = sequence_parallel;
      const FlopCount one = count_flops(make_work(model, with_images()), with_images()),
                      two = count_flops(make_work(model, split), split);
      EXPECT_DOUBLE_EQ(two.forward, one.forward);
      EXPECT_DOUBLE_EQ(two.backward, one.backward);
    }
  }
}

// Megatron-LM's towers have no sequence parallelism. Token embeddings are summed whole, and the gradients of
// rows are gathered for the images among them.
TEST(Tower, GathersTheGradientsOfRowsUnderSequenceParallelism) {
  Plan plan = with_images();
  plan.tp = 2;
  plan.sequence_parallel = true;
  const Block block = block_called(make_work(seeing(), plan), "embedding");
  const auto& gather =
      std::get<Collective>(kernel_called(block.backward_input, "placed_gradient_all_gather").what);
  EXPECT_EQ(gather.bytes, 2.0 * 128 * kTextWidth);
  EXPECT_EQ(std::get<Collective>(kernel_called(block.forward, "words_all_reduce").what).op,
            CollectiveOp::all_reduce);
  EXPECT_EQ(block.tensors[std::size_t(block.output)].elements, 128.0 * kTextWidth / 2);
}

TEST(Tower, IsRecomputedWhereTheFrameworkDoes) {
  Plan plan = with_images();
  plan.recompute = Recompute::full;
  EXPECT_THAT(block_called(make_work(seeing(), plan), "tower_layer").recompute, IsEmpty());
  plan.framework = Framework::fsdp;
  EXPECT_FALSE(block_called(make_work(seeing(), plan), "tower_layer").recompute.empty());
}

// A layer of the tower is gathered by itself, like a layer of the language model.
TEST(Tower, HasAUnitForEachLayer) {
  const std::vector<Unit> all = units(make_work(seeing(), with_images()), 0),
                          text = units(make_work(seeing(), with_images(0)), 0);
  EXPECT_EQ(all.size(), text.size() + 3 + 2) << "layers, patches and projector";
  double sum = 0;
  for (const Unit& unit : all) sum += unit.total();
  EXPECT_EQ(sum, make_work(seeing(), with_images()).parameters(0));
}

TEST(Tower, WithWindowsCostsTheirSquaresAlone) {
  Model model = seeing();
  Model& layers = model.towers[0].layers;
  layers.window = 16;
  layers.window_in_chunks = true;
  layers.windows = "110";
  const auto forward = [](const Model& of) {
    return count_flops(make_work(of, with_images()), with_images()).forward;
  };
  const double rows = 2.0 * 4 * kImageTokens;
  EXPECT_DOUBLE_EQ(forward(seeing()) - forward(model), 2 * 4 * kTowerWidth * rows * (4 * kImageTokens - 16));
}

// A tower that merges many patches: few tokens are many patches.
TEST(TowerRules, ProposeNumbersOfPatchesThatAMicrobatchHolds) {
  Model model = seeing();
  model.towers[0].projector.merged = kMaxTokens / 64;
  Plan plan = with_images(3);
  plan.image_tokens = 32;
  EXPECT_THAT(broken(Case{model, plan}), HasSubstr("patches; images = 2, or image_tokens = 21"));
  plan.images = 2;
  EXPECT_EQ(broken(Case{model, plan}), "");
  plan.micro_batch = plan.global_batch = 65;
  EXPECT_THAT(broken(Case{model, plan}), HasSubstr("patches; images = 0"));
}

TEST(TowerRules, NameWhatDoesNotFit) {
  const auto said = [](const Model& model, const Plan& plan) { return broken(Case{model, plan}); };
  EXPECT_EQ(said(seeing(), with_images()), "");
  EXPECT_THAT(said(llama(4, kTextWidth, 8, 4, 512, 1024), with_images()),
              HasSubstr("images: images need a model with a vision tower; images = 0"));
  Plan plan = with_images();
  plan.image_tokens = 0;
  EXPECT_THAT(said(seeing(), plan),
              HasSubstr("image_tokens: images of vision_config have no size of their own"));
  EXPECT_THAT(said(seeing(), plan), HasSubstr("images = 0, or image_tokens = 64")) << "two in 128 tokens";
  EXPECT_THAT(said(seeing(), with_images(9)),
              HasSubstr("must fit into it; images = 8, or image_tokens = 14"));
  EXPECT_THAT(said(seeing(), with_images(200)), HasSubstr("must fit into it; images = 8"))
      << "no tokens each";
  plan = with_images();
  plan.tp = 8;
  EXPECT_THAT(said(seeing(), plan), HasSubstr("tp must divide the heads of the tower; tp = 4"));
  plan = with_images();
  plan.cp = 2;
  EXPECT_THAT(said(seeing(), plan), HasSubstr("cp must be 1"));
  Model unknown = seeing();
  unknown.towers[0].is_known = false;
  EXPECT_THAT(said(unknown, with_images()),
              HasSubstr("whose layers, heads, widths and patches the file states"));
}

}  // namespace
}  // namespace rehearse
