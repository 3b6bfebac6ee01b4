// Vision towers and projectors that are not trained: no backward pass, no gradients, no messages for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "plan/messages.h"
#include "plan/sharding.h"
#include "plan/units.h"
#include "tower_case.h"

namespace rehearse {
namespace {

using testing::IsEmpty;

Plan frozen(bool tower, bool projector, Plan plan = with_images()) {
  plan.freeze_tower = tower;
  plan.freeze_projector = projector;
  return plan;
}

FlopCount flops_of(const Model& model, const Plan& plan) {
  return count_flops(make_work(model, plan), plan);
}

std::vector<std::string> names_of(const std::vector<Kernel>& kernels) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels) names.push_back(kernel.name);
  return names;
}

double sent_bytes(const Model& model, const Plan& plan, OpKind kind) {
  double bytes = 0;
  for (const StepMessage& message : step_messages(make_work(model, plan), model, plan))
    if (message.kind == kind) bytes += message.what.bytes * static_cast<double>(message.what.calls);
  return bytes;
}

// A norm of 64 with a bias, and two linear layers with biases.
constexpr double kInputs = 4 * kTowerWidth;
constexpr double kProjector =
    2 * kTowerWidth + kInputs * kInputs + kInputs + kInputs * kTextWidth + kTextWidth;
// FLOPs of each of its linear layers for the 32 tokens of two images.
constexpr double kFirst = 2 * 2 * kImageTokens * kInputs * kInputs,
                 kSecond = 2 * 2 * kImageTokens * kInputs * kTextWidth;

TEST(FrozenTower, KeepsAllParametersAndTrainsTheProjectorAlone) {
  const Model model = seeing();
  const double whole = double(count_tower(model.towers[0]));
  const double text = make_work(model, with_images(0)).parameters(0);
  const auto work = [&](bool tower, bool projector) { return make_work(model, frozen(tower, projector)); };
  EXPECT_EQ(work(true, false).parameters(0) - text, kProjector);
  EXPECT_EQ(work(true, false).frozen_parameters(0), whole - kProjector);
  EXPECT_EQ(work(false, true).parameters(0) - text, whole - kProjector);
  EXPECT_EQ(work(true, true).parameters(0), text);
  EXPECT_EQ(work(true, true).frozen_parameters(0), whole);
  EXPECT_EQ(work(false, false).frozen_parameters(0), 0);
  for (const Model& each : all_towers())
    EXPECT_EQ(make_work(each, frozen(true, true)).frozen_parameters(0), double(count_tower(each.towers[0])));
}

TEST(FrozenTower, RunsTheSameForwardPassAndKeepsNothingOfIt) {
  for (const Model& model : all_towers()) {
    const Work trained = make_work(model, with_images()), still = make_work(model, frozen(true, true));
    ASSERT_EQ(trained.parts, still.parts);
    for (std::size_t i = 0; i < trained.blocks.size(); ++i) {
      const Block& block = still.blocks[i];
      EXPECT_EQ(names_of(block.forward), names_of(trained.blocks[i].forward));
      if (block.role != BlockRole::tower) continue;
      EXPECT_THAT(block.backward_input, IsEmpty()) << block.name;
      EXPECT_THAT(block.backward_weight, IsEmpty()) << block.name;
      EXPECT_THAT(block.saved, IsEmpty()) << block.name;
      EXPECT_FALSE(trained.blocks[i].saved.empty()) << block.name;
    }
    EXPECT_EQ(flops_of(model, frozen(true, true)).forward, flops_of(model, with_images()).forward);
  }
}

// A linear layer's backward has a GEMM for its weight and one for its input, each of as many FLOPs as the
// forward.
TEST(FrozenTower, BackwardFlopsAreThoseOfTheProjector) {
  Model model = seeing();
  const double text = flops_of(model, with_images(0)).backward;
  EXPECT_DOUBLE_EQ(flops_of(model, frozen(true, false)).backward - text, 2 * kFirst + 2 * kSecond);
  model.towers[0].projector.has_norm = false;  // nothing reads the gradient of the first layer's input
  EXPECT_DOUBLE_EQ(flops_of(model, frozen(true, false)).backward - text, kFirst + 2 * kSecond);
  EXPECT_DOUBLE_EQ(flops_of(model, frozen(true, true)).backward, text);
}

// Gradients pass through the frozen projector on their way to the tower.
TEST(FrozenProjector, HasNoGemmsForItsWeights) {
  const Model model = seeing();
  EXPECT_DOUBLE_EQ(flops_of(model, with_images()).backward - flops_of(model, frozen(false, true)).backward,
                   kFirst + kSecond);
  const Block block = block_called(make_work(model, frozen(false, true)), "tower_projector");
  EXPECT_GE(block.input_gradient, 0);
  EXPECT_THAT(block.backward_weight, IsEmpty());
}

TEST(FrozenProjector, OfAFrozenTowerNeedsNoGradientOfImages) {
  const auto backward_of = [](const Plan& plan) {
    return names_of(block_called(make_work(seeing(), plan), "embedding").backward_input);
  };
  EXPECT_THAT(backward_of(frozen(true, false)), testing::Contains("images_gradient"));
  EXPECT_THAT(backward_of(frozen(true, true)), testing::Not(testing::Contains("images_gradient")));
  EXPECT_THAT(backward_of(frozen(true, true)), testing::Contains("words_gradient"));
}

TEST(FrozenTower, IsNotRecomputed) {
  Plan plan = frozen(true, false);
  plan.framework = Framework::fsdp;
  plan.recompute = Recompute::full;
  EXPECT_THAT(block_called(make_work(seeing(), plan), "tower_layer").recompute, IsEmpty());
}

TEST(FrozenTower, SendsNoGradients) {
  const Model model = seeing();
  for (const int zero : {0, 1, 2, 3}) {
    Plan plan = frozen(true, true);
    plan.framework = Framework::fsdp;
    plan.dp = 4;
    plan.zero = zero;
    Plan blind = plan;
    blind.images = 0;
    EXPECT_NEAR(sent_bytes(model, plan, OpKind::reduce_grad), sent_bytes(model, blind, OpKind::reduce_grad),
                1e-3)
        << zero;
    const double gathered =
        sent_bytes(model, plan, OpKind::unshard) - sent_bytes(model, blind, OpKind::unshard);
    EXPECT_NEAR(gathered, zero == 3 ? 2 * double(count_tower(model.towers[0])) : 0, 1e-3) << zero;
  }
}

// With ZeRO-3, the forward pass gathers each unit of the tower.
TEST(FrozenTower, IsGatheredForTheForwardPassAlone) {
  const Model model = seeing();
  Plan plan = frozen(true, true);
  plan.framework = Framework::fsdp;
  plan.dp = 4;
  plan.zero = 3;
  const Work work = make_work(model, plan);
  const MessageSizes sizes = message_sizes(work, model, plan);
  const int parts = static_cast<int>(units(work, 0).size());
  const auto messages = [&](OpKind kind, int part, bool for_backward) {
    return messages_of(sizes, plan, {kind, 0, part, parts, for_backward});
  };
  EXPECT_EQ(messages(OpKind::unshard, 0, false).size(), 1U) << "the patches";
  EXPECT_THAT(messages(OpKind::unshard, 0, true), IsEmpty());
  EXPECT_EQ(messages(OpKind::unshard, parts - 1, true).size(), 1U) << "a layer of the language model";
}

}  // namespace
}  // namespace rehearse
