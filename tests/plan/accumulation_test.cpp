// Which kernel adds a microbatch's gradients to earlier ones, and how many bytes move for it?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/read.h"
#include "plan/frameworks/traits.h"
#include "plan/recipe.h"
#include "work_case.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Plan plan_of(Framework framework, Precision precision, int microbatches) {
  Plan plan;
  plan.framework = framework;
  plan.precision = precision;
  plan.global_batch = microbatches;
  apply_framework(plan);
  return plan;
}

// Megatron-LM of April 2021: of 4 gradients in fp16 the last 3 are read, added and written.
TEST(Accumulation, OfFp16GradientsIsLeftToAutograd) {
  EXPECT_THAT(addition_bytes(plan_of(Framework::megatron_2021, Precision::fp16, 4)),
              ElementsAre(6 * 3 / 4.0));
  EXPECT_THAT(addition_bytes(plan_of(Framework::megatron_2021, Precision::fp16, 1)), IsEmpty());
}

TEST(Accumulation, IsFusedWithTheProductsInMegatronCore) {
  Plan plan = plan_of(Framework::megatron_core, Precision::bf16, 4);
  EXPECT_THAT(addition_bytes(plan), IsEmpty());
  plan.fused_accumulation = false;
  EXPECT_THAT(addition_bytes(plan), ElementsAre(2 + 4 + 4)) << "all 4 are added to fp32";
}

TEST(Accumulation, OfReducedGradientsIsOfARanksShard) {
  Plan plan = plan_of(Framework::fsdp, Precision::bf16, 1);
  plan.zero = 3;
  plan.dp = 8;
  plan.global_batch = 8 * 2;
  EXPECT_THAT(addition_bytes(plan), ElementsAre(12 / 8.0 / 2));
}

TEST(Accumulation, IsPartOfAProductsResultsWhereFused) {
  Case c{read_model("llama2-7b"), {}};
  const auto result_bytes = [&c] {
    const Block layer = block_called(make_work(c.model, c.plan), "layer");
    return std::get<Gemm>(layer.backward_weight.front().what).result_bytes;
  };
  EXPECT_EQ(result_bytes(), 4 + 4);
  c.plan.fused_accumulation = false;
  EXPECT_EQ(result_bytes(), 0) << "written once";
}

// A table's gradient is made whole in bf16, read again and added to the one in fp32.
TEST(Accumulation, OfATablesGradientIsNoProducts) {
  const Model model = read_model("llama2-7b");
  Plan plan;
  const Block block = block_called(make_work(model, plan), "embedding");
  const double rows = 2048 * 4096, table = 32000 * 4096;
  EXPECT_EQ(block.bytes_moved(block.backward_weight.front()), 2 * rows + 8 * 2048 + (2 + 2 + 4 + 4) * table);
  plan.precision = Precision::fp32;
  const Block wide = block_called(make_work(model, plan), "embedding");
  EXPECT_EQ(wide.bytes_moved(wide.backward_weight.front()), 4 * rows + 8 * 2048 + 4 * table);
}

}  // namespace
}  // namespace rehearse
