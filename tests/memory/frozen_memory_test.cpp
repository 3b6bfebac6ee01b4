// Memory of parameters that are held and not trained.
#include <gtest/gtest.h>

#include "memory/memory.h"
#include "plan/tower_case.h"
#include "result/cases.h"

namespace rehearse {
namespace {

RankMemory memory_of(const Plan& plan) {
  return rank_memory(test::full_schedule(plan), plan, make_work(seeing(), plan)).at(0);
}

Plan frozen(bool tower, bool projector) {
  Plan plan = with_images();
  plan.freeze_tower = tower;
  plan.freeze_projector = projector;
  return plan;
}

double tower_parameters() {
  return double(count_tower(seeing().towers[0]));
}

// Mixed precision of Megatron-LM has 18 bytes for each trained parameter.
TEST(FrozenMemory, IsTwoBytesAParameterOfTheTower) {
  const RankMemory blind = memory_of(with_images(0)), still = memory_of(frozen(true, true)),
                   trained = memory_of(with_images());
  const double tower = tower_parameters();
  EXPECT_DOUBLE_EQ(still.parameters_bytes - blind.parameters_bytes, 2 * tower);
  EXPECT_DOUBLE_EQ(still.gradients_bytes, blind.gradients_bytes);
  EXPECT_DOUBLE_EQ(still.optimizer_bytes, blind.optimizer_bytes);
  EXPECT_DOUBLE_EQ(trained.gradients_bytes - still.gradients_bytes, 4 * tower);
  EXPECT_DOUBLE_EQ(trained.optimizer_bytes - still.optimizer_bytes, 12 * tower);
  Plan wide = frozen(true, true);
  wide.precision = Precision::fp32;
  Plan blind_wide = wide;
  blind_wide.images = 0;
  EXPECT_DOUBLE_EQ(memory_of(wide).parameters_bytes - memory_of(blind_wide).parameters_bytes, 4 * tower);
}

// FSDP keeps trained parameters in fp32, and divides all of them.
TEST(FrozenMemory, IsDividedWithZero3) {
  Plan plan = frozen(true, true);
  plan.framework = Framework::fsdp;
  plan.recipe = Recipe::fsdp;
  plan.dp = 4;
  plan.global_batch = 4;
  plan.zero = 3;
  Plan blind = plan;
  blind.images = 0;
  EXPECT_DOUBLE_EQ(memory_of(plan).parameters_bytes - memory_of(blind).parameters_bytes,
                   2 * tower_parameters() / 4);
  EXPECT_DOUBLE_EQ(memory_of(plan).optimizer_bytes, memory_of(blind).optimizer_bytes);
  EXPECT_DOUBLE_EQ(memory_of(blind).parameters_bytes, 4 * make_work(seeing(), blind).parameters(0) / 4);
}

// The embedding keeps which rows are images' in either case. The tower and the projector keep nothing.
TEST(FrozenMemory, KeepsNoActivationsOfTheTower) {
  const auto kept = [](const Plan& plan) { return make_work(seeing(), plan).saved_bytes(0); };
  EXPECT_DOUBLE_EQ(kept(frozen(true, true)), kept(with_images(0)));
  const Work trained = make_work(seeing(), with_images());
  double of_tower = 0;
  for (const Repeated& part : trained.parts[0]) {
    const Block& block = trained.blocks[static_cast<std::size_t>(part.block)];
    if (block.role == BlockRole::tower)
      of_tower += static_cast<double>(part.repeats) * block.bytes(block.saved);
  }
  EXPECT_DOUBLE_EQ(kept(with_images()) - kept(frozen(true, true)), of_tower);
  EXPECT_LT(memory_of(frozen(true, true)).activations_bytes, memory_of(with_images()).activations_bytes);
}

}  // namespace
}  // namespace rehearse
