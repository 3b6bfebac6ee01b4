// Copies to the host and back are all there, and waited for.
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "schedule/check.h"
#include "schedule/text.h"
#include "shapes.h"

namespace rehearse {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Faults without the first op of a name, and without waits for it.
std::vector<std::string> faults_without(const Schedule& schedule, const Plan& plan, const std::string& name) {
  std::vector<std::size_t> left = all_ops(schedule, 0);
  left.erase(left.begin() + static_cast<std::ptrdiff_t>(position(schedule, 0, name)));
  return check_schedule(with_list(schedule, 0, left), plan);
}

RC_GTEST_PROP(OffloadCheck, NamesTheCopyThatWasDropped, ()) {
  PipelineShape shape = *any_shape();
  shape.plan.offload = Offload::activations;
  const Schedule schedule = shape.complete();
  const int rank = *rc::gen::inRange(0, schedule.pp);
  const RankOps& ops = schedule.ranks[static_cast<std::size_t>(rank)];
  std::vector<std::size_t> copies;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (is_host_copy(ops[i].kind)) copies.push_back(i);
  RC_PRE(!copies.empty());
  const std::size_t lost = *rc::gen::elementOf(copies);
  std::vector<std::size_t> left = all_ops(schedule, rank);
  left.erase(left.begin() + static_cast<std::ptrdiff_t>(lost));
  const auto faults = check_schedule(with_list(schedule, rank, left), shape.plan);
  const std::string needs = "needs " + to_string(ops[lost]);
  RC_ASSERT(std::ranges::any_of(
      faults, [&](const std::string& fault) { return fault.find(needs) != std::string::npos; }));
}

const Plan kOneRank = plan_of(ScheduleName::gpipe, 1, 1, 3);

TEST(OffloadCheck, FindsABackwardThatDoesNotWaitForItsActivations) {
  const Schedule schedule =
      read_text("rank 0: 0F0 0OFFLOAD0(0F0) 0F1 0RELOAD0(0OFFLOAD0) 0F2 0B0() 0B1 0B2\n", "early.txt");
  EXPECT_THAT(check_schedule(schedule, kOneRank), ElementsAre("0B0 on rank 0 does not wait for 0RELOAD0"));
}

TEST(OffloadCheck, FindsCopiesThatBeginTooEarly) {
  const Schedule schedule =
      read_text("rank 0: 0F0 0OFFLOAD0() 0F1 0RELOAD0() 0F2 0B0(0RELOAD0) 0B1 0B2\n", "early.txt");
  EXPECT_THAT(check_schedule(schedule, kOneRank),
              ElementsAre("0OFFLOAD0 on rank 0 does not wait for 0F0",
                          "0RELOAD0 on rank 0 does not wait for 0OFFLOAD0"));
}

// Two replicas, gradients in two parts.
Schedule of_optimizer(Plan& plan) {
  plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 2, 2);
  plan.zero = 1;
  plan.offload = Offload::optimizer;
  GradientSync sync{true, false, 2, {2}};
  sync.to_host = true;
  return complete_schedule(plan, sync);
}

TEST(OffloadCheck, FindsStepsThatDoNotComeBack) {
  Plan plan;
  const Schedule schedule = of_optimizer(plan);
  EXPECT_THAT(check_schedule(schedule, plan), IsEmpty());
  EXPECT_THAT(faults_without(schedule, plan, "0RELOAD_PARAM"),
              Contains("0OFFLOAD_GRAD.0 on rank 0 needs 0RELOAD_PARAM, which that rank does not have"));
}

TEST(OffloadCheck, FindsGradientsThatLeaveTooEarlyAndParametersThatReturnTooEarly) {
  const Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 1, 2);
  const Schedule schedule = read_text(
      "rank 0: 0F0 0B0 0REDUCE_GRAD(0B0) 0OFFLOAD_GRAD(0B0) 0STEP(0REDUCE_GRAD,0OFFLOAD_GRAD) "
      "0RELOAD_PARAM()\n",
      "early.txt");
  EXPECT_THAT(check_schedule(schedule, plan),
              ElementsAre("0OFFLOAD_GRAD on rank 0 does not wait for 0REDUCE_GRAD",
                          "0RELOAD_PARAM on rank 0 does not wait for 0STEP"));
}

}  // namespace
}  // namespace rehearse
