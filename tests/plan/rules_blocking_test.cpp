// No kernel overlaps another where the host waits for each kernel.
#include <gtest/gtest.h>

#include <functional>

#include "plan/plan.h"
#include "small_model.h"

namespace rehearse {
namespace {

Plan blocking() {
  Plan plan;
  plan.tp = plan.cp = plan.dp = 2;
  plan.global_batch = 8;
  plan.sequence_parallel = true;
  plan.launch_blocking = true;
  plan.overlap_grad_reduce = plan.tp_backward_overlap = false;
  plan.cp_exchange = ContextExchange::gather;
  return plan;
}

std::size_t broken(const std::function<void(Plan&)>& change) {
  Plan plan = blocking();
  change(plan);
  std::size_t count = 0;
  for (const Violation& violation : broken_rules(plan, test::small_model(), plan.gpus()))
    count += violation.pointer == "launch_blocking";
  return count;
}

TEST(BlockingRules, TakeAPlanThatOverlapsNothing) {
  EXPECT_EQ(broken([](Plan&) {}), 0);
}

TEST(BlockingRules, NameEachOverlap) {
  const std::function<void(Plan&)> changes[] = {
      [](Plan& p) { p.overlap_grad_reduce = true; },
      [](Plan& p) { p.overlap_p2p = true; },
      [](Plan& p) { p.zero = 1, p.overlap_param_gather = true; },
      [](Plan& p) { p.tp_comm_overlap = true; },
      [](Plan& p) { p.tp_backward_overlap = true; },
      [](Plan& p) { p.cp_exchange = ContextExchange::ring; },
      [](Plan& p) { p.zero = 2; },
      [](Plan& p) { p.zero = 3; },
      [](Plan& p) { p.offload = Offload::optimizer; },
      [](Plan& p) { p.cuda_graph = true; },
      [](Plan& p) { p.overlap_experts = true; },
  };
  for (const auto& change : changes) {
    EXPECT_EQ(broken(change), 1);
    EXPECT_EQ(broken([&](Plan& p) { change(p), p.launch_blocking = false; }), 0);
  }
}

}  // namespace
}  // namespace rehearse
