// Orders that a search found train as one rank does.
#include "found_orders.h"
#include "same_training.h"
#include "schedule/check.h"

namespace rehearse {
namespace {

struct Laid {
  ScheduleName schedule;
  int pp, vpp, dp;
};

class FoundOrders : public testing::TestWithParam<Laid> {};

TEST_P(FoundOrders, TrainAsOneRankDoes) {
  const Laid& laid = GetParam();
  Plan plan = plan_of(laid.schedule, 1, laid.pp, laid.dp);
  plan.vpp = laid.vpp;
  plan.overlap_p2p = true;
  const Model model = tiny_llama();
  ASSERT_TRUE(runs(plan, model));
  const std::vector<Schedule> orders = orders_for_a_heavy_head(plan);
  ASSERT_FALSE(orders.empty());
  bool splits = false;
  for (const Schedule& order : orders) {
    Training training = training_of(model, plan);
    training.schedule = complete_schedule(order, plan, sync_of(model, plan));
    ASSERT_EQ(check_schedule(training.schedule, plan), std::vector<std::string>());
    expect_same_training(training, model);
    for (const RankOps& ops : order.ranks)
      for (std::size_t i = 0; i < ops.size(); ++i) splits |= ops[i].kind == OpKind::backward_input;
  }
  EXPECT_TRUE(splits);
}

INSTANTIATE_TEST_SUITE_P(HeavyHead, FoundOrders,
                         testing::Values(Laid{ScheduleName::one_f_one_b, 2, 1, 1},
                                         Laid{ScheduleName::one_f_one_b, 4, 1, 1},
                                         Laid{ScheduleName::one_f_one_b, 2, 1, 2},
                                         Laid{ScheduleName::interleaved, 2, 2, 1},
                                         Laid{ScheduleName::zb_v, 2, 2, 1}));

}  // namespace
}  // namespace rehearse
