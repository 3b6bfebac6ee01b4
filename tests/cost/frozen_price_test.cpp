// Time of a vision tower that is not trained.
#include <gtest/gtest.h>

#include "cost/price.h"
#include "machines.h"
#include "plan/tower_case.h"

namespace rehearse {
namespace {

// Only the tower's blocks: frozen, they run the same forward pass and no backward pass.
TEST(FrozenPrice, IsThatOfTheForwardPassAlone) {
  const auto tower_times = [](bool is_frozen) {
    Plan plan = with_images();
    plan.tp = 2;
    plan.freeze_tower = plan.freeze_projector = is_frozen;
    Work work = make_work(seeing(), plan);
    std::erase_if(work.parts[0], [&](const Repeated& part) {
      return work.blocks[static_cast<std::size_t>(part.block)].role != BlockRole::tower;
    });
    return price(work, plan, test::dgx_a100(), read_profile("a100-sxm-80gb")).times.stages.at(0);
  };
  const StageTimes trained = tower_times(false), still = tower_times(true);
  EXPECT_DOUBLE_EQ(still.forward.total(), trained.forward.total());
  EXPECT_GT(trained.backward_input.total(), 0);
  EXPECT_GT(trained.backward_weight.total(), 0);
  EXPECT_EQ(still.backward_input.total(), 0);
  EXPECT_EQ(still.backward_weight.total(), 0);
}

}  // namespace
}  // namespace rehearse
