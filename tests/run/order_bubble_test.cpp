// The bubble of an order without a closed form, against those that have one.
#include "run/order_bubble.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cases.h"
#include "result/report.h"

namespace rehearse {
namespace {

RC_GTEST_PROP(OrderBubble, EqualsTheClosedFormWhereThereIsOne, ()) {
  const int pp = *rc::gen::inRange(2, 9);
  const auto name = *rc::gen::element(ScheduleName::gpipe, ScheduleName::one_f_one_b,
                                      ScheduleName::interleaved, ScheduleName::zb_h1);
  const int vpp = name == ScheduleName::interleaved ? *rc::gen::inRange(2, 5) : 1;
  Plan plan = pipeline_plan(pp, vpp, pp * *rc::gen::inRange(2, 6));
  plan.schedule = name;
  RC_ASSERT(std::abs(bubble_of_order(make_order(plan), plan) - ideal_bubble_fraction(plan)) < 1e-12);
  RC_ASSERT(std::abs(bubble_of_order(add_transfers(make_order(plan), true), plan) -
                     ideal_bubble_fraction(plan)) < 1e-12);
}

TEST(OrderBubble, OfOneRankIsNone) {
  const Plan plan = pipeline_plan(1, 1, 4);
  EXPECT_EQ(bubble_of_order(make_order(plan), plan), 0);
}

}  // namespace
}  // namespace rehearse
