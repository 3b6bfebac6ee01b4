#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/read.h"
#include "work_case.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

Case padded_mixtral() {
  Case c{read_model("mixtral-8x7b"), {}};
  c.plan.tp = c.plan.etp = 4;
  c.plan.ep = c.plan.dp = 8;
  c.plan.sequence_parallel = true;
  c.plan.moe_capacity = 1;
  return c;
}

Block sparse_layer(const Case& c) {
  return block_called(make_work(c.model, c.plan), "sparse_layer");
}

std::vector<std::string> waited_for(const Case& c) {
  std::vector<std::string> names;
  for (const Kernel& kernel : sparse_layer(c).forward)
    if (kernel.host_waits) names.push_back(kernel.name);
  return names;
}

std::vector<std::string> names_of(const std::vector<Kernel>& kernels) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels) names.push_back(kernel.name);
  return names;
}

TEST(Router, MakesTheHostWaitUnlessACapacityFixesHowManyRowsGoWhere) {
  Case c = padded_mixtral();
  EXPECT_THAT(waited_for(c), IsEmpty());
  c.plan.moe_capacity = 0;
  EXPECT_THAT(waited_for(c), ElementsAre("top_k"));
  c.plan.fused_router = false;
  EXPECT_THAT(waited_for(c), ElementsAre("router_rows_received"));
}

// Megatron core 0.10 to 0.12 counted the elements that a mask selects, for the rows and again for their
// weights.
TEST(Router, MakesTheHostWaitForMasks) {
  Case c = padded_mixtral();
  c.plan.fused_permute = false;
  for (const int release : {9, 13, 0}) {
    c.plan.core_release = release;
    EXPECT_THAT(waited_for(c), IsEmpty()) << release;
  }
  c.plan.core_release = 10;
  EXPECT_THAT(waited_for(c), ElementsAre("top_k", "pick_weights"));
  c.plan.fused_permute = true;
  EXPECT_THAT(waited_for(c), IsEmpty());
}

// The counts of 8 experts in 64-bit integers, summed over the ranks of a sequence.
TEST(Router, OperationByOperationBalancesExpertsOverTheSequence) {
  Case c = padded_mixtral();
  c.plan.fused_router = false;
  const Block layer = sparse_layer(c);
  const auto sum = std::find_if(layer.forward.begin(), layer.forward.end(),
                                [](const Kernel& kernel) { return kernel.name == "router_loss_counts"; });
  ASSERT_NE(sum, layer.forward.end());
  const auto& collective = std::get<Collective>(sum->what);
  EXPECT_EQ(collective.op, CollectiveOp::all_reduce);
  EXPECT_EQ(collective.group, CommGroup::tensor);
  EXPECT_EQ(collective.bytes, 8 * 8);
  c.plan.fused_router = true;
  EXPECT_EQ(sparse_layer(c).forward.size() + 24, layer.forward.size());
}

// Two ways back to the scores: of the weights and of the loss.
TEST(Router, OperationByOperationReturnsTheGradientsOfWeightsAndLoss) {
  Case c = padded_mixtral();
  c.plan.fused_router = false;
  EXPECT_THAT(
      names_of(sparse_layer(c).backward_input),
      IsSupersetOf({"router_top_k_backward", "router_shares_backward", "router_loss_shares_backward"}));
}

TEST(Router, SendsWeightsAlongOnlySinceTheActivationTakesThem) {
  Case c = padded_mixtral();
  const auto sends = [&c](const char* name) {
    const std::vector<std::string> names = names_of(sparse_layer(c).forward);
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_TRUE(sends("dispatch_weights"));
  c.plan.core_release = 12;
  EXPECT_FALSE(sends("dispatch_weights"));
  EXPECT_FALSE(sends("weigh")) << "the fused kernel weighs";
  c.plan.fused_permute = false;
  EXPECT_TRUE(sends("weigh"));
}

}  // namespace
}  // namespace rehearse
