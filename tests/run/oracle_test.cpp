// Where nothing contends, SimGrid equals the longest path.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "cases.h"
#include "in_child.h"
#include "run/reference.h"
#include "run/simulate.h"

namespace rehearse {
namespace {

// Every message stream of every rank has links of its own: flows of one stream never overlap.
Loads uncontended_loads(const Schedule& schedule, const Tasks& tasks, const std::vector<double>& seconds,
                        std::uint64_t bytes) {
  Loads loads = fixed_loads(schedule, tasks, [&](const Op& op) {
    const double base = seconds[(static_cast<std::size_t>(op.stage) * 5 + static_cast<std::size_t>(op.kind)) %
                                seconds.size()];
    return is_send(op.kind) ? base * 1e-3 : base / op.parts;
  });
  loads.first_flow = {0};
  for (TaskId task = 0; task < tasks.size(); ++task) {
    const OpRef leader = tasks.leader[task];
    const Op& op =
        schedule.ranks[static_cast<std::size_t>(leader.instance)][static_cast<std::size_t>(leader.op)];
    if (is_send(op.kind) && bytes > 0) {
      const auto out = static_cast<LinkId>(leader.instance * kStreams + static_cast<int>(op.stream));
      const auto in =
          static_cast<LinkId>(tasks.peer[task].instance * kStreams + static_cast<int>(op.stream) + 1);
      loads.flows.push_back({{out, in}, bytes});
      loads.transfer_s[task] = static_cast<double>(bytes) / 1e9;
    }
    loads.first_flow.push_back(static_cast<std::uint32_t>(loads.flows.size()));
  }
  loads.capacity.assign(static_cast<std::size_t>(schedule.pp) * kStreams, 1e9);
  for (LinkId link = 0; link < schedule.pp * kStreams; ++link) loads.ends.push_back({link});
  return loads;
}

RC_GTEST_PROP(Oracle, SimulationEqualsTheLongestPathWhereNothingContends, ()) {
  const int p = *rc::gen::inRange(1, 9);
  const ScheduleName name = *rc::gen::elementOf(kScheduleNames);
  const bool interleaves = name == ScheduleName::interleaved && p > 1;
  const int v = interleaves ? *rc::gen::inRange(2, 4) : is_v_shaped(name) ? 2 : 1;
  const int m = interleaves ? p * *rc::gen::inRange(1, 5) : *rc::gen::inRange(1, 20) + (v > 1 ? 2 * p : 0);
  Plan plan = pipeline_plan(p, v, m);
  plan.schedule = name;
  plan.overlap_p2p = *rc::gen::arbitrary<bool>() || (interleaves && p == 2);
  const GradientSync sync{*rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(), *rc::gen::inRange(1, 3),
                          std::vector<int>(static_cast<std::size_t>(plan.stages()), *rc::gen::inRange(1, 4))};
  const Schedule schedule = complete_schedule(plan, sync);
  const Tasks tasks = derive_tasks(schedule, plan);
  const auto milliseconds = *rc::gen::container<std::vector<int>>(7, rc::gen::inRange(0, 1000));
  std::vector<double> seconds;
  for (const int number : milliseconds) seconds.push_back(number * 1e-3);
  const auto bytes = static_cast<std::uint64_t>(*rc::gen::inRange(0, 200'000'000));
  const Loads loads = uncontended_loads(schedule, tasks, seconds, bytes);

  const Timeline expected = reference(schedule, tasks, loads);
  const auto simulated = in_child([&] { return flatten(simulate(schedule, tasks, loads)); });
  RC_ASSERT(simulated.has_value());
  const std::vector<double> longest = flatten(expected);
  RC_ASSERT(simulated->size() == longest.size());
  for (std::size_t i = 0; i < longest.size(); ++i) {
    RC_ASSERT(std::abs((*simulated)[i] - longest[i]) <= 1e-9 * std::max(expected.end(), 1e-3));
  }
}

TEST(Oracle, TheSameScheduleGivesTheSameNumbersEveryTime) {
  const Plan plan = pipeline_plan(4, 2, 8);
  const Schedule schedule = add_transfers(orders::interleaved({4, 8, 2}), true);
  const Tasks tasks = derive_tasks(schedule, plan);
  const Loads loads = uncontended_loads(schedule, tasks, {0.3, 0.7, 0.1}, 50'000'000);
  const auto first = in_child([&] { return flatten(simulate(schedule, tasks, loads)); });
  ASSERT_TRUE(first.has_value());
  for (int run = 0; run < 5; ++run) {
    EXPECT_EQ(in_child([&] { return flatten(simulate(schedule, tasks, loads)); }), first);
  }
}

TEST(Oracle, ASecondSimulationInOneProcessIsRefused) {
  const Plan plan = pipeline_plan(1, 1, 1);
  const Schedule schedule = orders::one_f_one_b({1, 1});
  const Tasks tasks = derive_tasks(schedule, plan);
  const Loads loads = fixed_loads(schedule, tasks, [](const Op&) { return 1.0; });
  EXPECT_EQ(simulate(schedule, tasks, loads).end(), 2.0);
  EXPECT_THROW(simulate(schedule, tasks, loads), std::logic_error);
}

}  // namespace
}  // namespace rehearse
