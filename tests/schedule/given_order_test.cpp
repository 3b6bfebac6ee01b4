// Orders of another origin: completed by the passes, or taken with the messages that they hold.
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "schedule/check.h"
#include "schedule/orders.h"
#include "schedule/passes.h"
#include "schedule/text.h"
#include "shapes.h"

namespace rehearse {
namespace {

GradientSync sync_of(const Plan& plan) {
  GradientSync sync{plan.overlap_grad_reduce, false, plan.dp, {}};
  sync.buckets.assign(static_cast<std::size_t>(plan.stages()), 2);
  return sync;
}

RC_GTEST_PROP(GivenOrder, OfComputeIsCompletedAsTheNamedOne, ()) {
  const Plan plan = (*any_shape()).plan;
  const Schedule order = read_csv(write_csv(make_order(plan)), "order.csv");
  RC_ASSERT(same(complete_schedule(order, plan, sync_of(plan)), complete_schedule(plan, sync_of(plan))));
}

RC_GTEST_PROP(GivenOrder, WithMessagesKeepsThemAndPlacesTheRestAnew, ()) {
  const Plan plan = (*any_shape()).plan;
  const Schedule complete = complete_schedule(plan, sync_of(plan));
  const Schedule read = read_csv(write_csv(add_transfers(make_order(plan), plan.overlap_p2p)), "full.csv");
  RC_ASSERT(same(complete_schedule(read, plan, sync_of(plan)), complete));
  const Schedule whole = read_csv(write_csv(complete), "whole.csv");
  RC_ASSERT(check_schedule(complete_schedule(whole, plan, sync_of(plan)), plan).empty());
}

TEST(GivenOrder, AnOverlappedPairRunsOneAfterTheOther) {
  const Schedule pair = read_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n", "pair.csv");
  EXPECT_TRUE(same(pair, read_csv("0F0,0F1,0B0,0B1\n", "flat.csv")));
  for (const char* bad : {"(0F0;0B0)\n", "(0F0;0B0)OVERLAP\n", "(0F0;)OVERLAP_F_B\n", "()OVERLAP_F_B\n"})
    EXPECT_THROW(read_csv(bad, "bad.csv"), InputError) << bad;
}

}  // namespace
}  // namespace rehearse
