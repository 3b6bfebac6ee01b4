// The plan that torchtitan trains where its files cannot express the given plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "export/launch_lines.h"
#include "model/read.h"
#include "plan/frameworks/traits.h"

namespace rehearse {
namespace {

// Without FSDP, torch.autocast sets the mixed precision. With tensor or pipeline parallelism there is none.
TEST(Torchtitan, NamesThePrecisionThatItLacksWithoutFsdp) {
  Plan plan;
  plan.framework = Framework::torchtitan;
  apply_framework(plan);
  const Model model = read_model("llama3-8b");
  EXPECT_THAT(torchtitan_toml(model, plan).unsaid,
              testing::AllOf(testing::Contains("recipe"), testing::Not(testing::Contains("precision"))));
  plan.tp = 2;
  apply_framework(plan);
  EXPECT_THAT(torchtitan_toml(model, plan).unsaid, testing::Contains("precision"));
  plan.dp = 2;
  plan.zero = 3;
  EXPECT_THAT(torchtitan_toml(model, plan).unsaid,
              testing::Not(testing::AnyOf(testing::Contains("precision"), testing::Contains("recipe"))));
}

}  // namespace
}  // namespace rehearse
