// The path through all ranks that sets the step time, against closed forms and an oracle.
#include "result/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>

#include "cases.h"
#include "result/shares.h"

namespace rehearse {
namespace {

using namespace test;

struct DrawnPath {
  Case made;
  Tasks tasks;
  std::vector<PathSegment> path;
};

DrawnPath drawn_path() {
  const int pp = *rc::gen::inRange(1, 6);
  const int vpp = pp > 1 ? *rc::gen::inRange(1, 4) : 1;
  Plan plan = small_plan(pp, vpp, pp * *rc::gen::inRange(1, 5), *rc::gen::inRange(1, 3));
  plan.overlap_p2p = *rc::gen::arbitrary<bool>();
  plan.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  plan.one_queue = *rc::gen::arbitrary<bool>();
  const auto seconds = [] { return 1e-3 * *rc::gen::inRange(0, 3000); };
  const Durations durations{1e-3 + seconds(), 1e-3 + seconds(), seconds(), seconds(), seconds()};
  TaskOptions options;
  options.one_queue = plan.one_queue;
  options.fold = *rc::gen::element(Fold::replicas, Fold::none);
  DrawnPath drawn{
      make_case(plan, durations, *rc::gen::arbitrary<bool>(), small_model(pp * vpp), options), {}, {}};
  drawn.tasks = derive_tasks(drawn.made.schedule, plan, options);
  drawn.path = critical_path(drawn.made.timeline, drawn.made.schedule, drawn.tasks, plan.one_queue);
  return drawn;
}

const Span& span_of(const DrawnPath& drawn, const PathSegment& segment) {
  return drawn.made.timeline.ranks[segment.rank].spans[static_cast<std::size_t>(segment.op)];
}

TaskId task_of(const DrawnPath& drawn, const PathSegment& segment) {
  return drawn.tasks.task(static_cast<int>(segment.rank), static_cast<std::size_t>(segment.op));
}

double seconds_of(const DrawnPath& drawn, TaskId task) {
  const OpRef leader = drawn.tasks.leader[task];
  return drawn.made.timeline.ranks[static_cast<std::size_t>(leader.instance)]
      .spans[static_cast<std::size_t>(leader.op)]
      .seconds();
}

// Whether `after` waits for `before`, by way of tasks that take no time.
bool waits_for(const DrawnPath& drawn, TaskId after, TaskId before) {
  std::set<TaskId> seen;
  std::vector<TaskId> pending = {before};
  while (!pending.empty()) {
    const TaskId task = pending.back();
    pending.pop_back();
    for (const TaskId next : drawn.tasks.after(task)) {
      if (next == after) return true;
      if (seconds_of(drawn, next) == 0 && seen.insert(next).second) pending.push_back(next);
    }
  }
  return false;
}

// Oracle: a chain of tasks that is as long as the step, in which each task waits for the previous one. No
// shorter step is possible with such a chain, so it is critical.
RC_GTEST_PROP(CriticalPath, IsAChainOfWaitsAsLongAsTheStep, ()) {
  const DrawnPath drawn = drawn_path();
  const std::vector<PathSegment>& path = drawn.path;
  const double step_s = drawn.made.timeline.end();
  RC_ASSERT(!path.empty());
  RC_ASSERT(path.front().begin == 0);
  RC_ASSERT(path.back().end == step_s);
  const auto is_near = [&](double a, double b) { return std::abs(a - b) <= 1e-6 * step_s; };
  double sum = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    RC_ASSERT(path[i].op >= 0);  // all ops begin as soon as they may
    RC_ASSERT(is_near(span_of(drawn, path[i]).begin, path[i].begin));
    RC_ASSERT(is_near(span_of(drawn, path[i]).end, path[i].end));
    sum += span_of(drawn, path[i]).seconds();
    if (i == 0) continue;
    RC_ASSERT(path[i - 1].end == path[i].begin);
    RC_ASSERT(waits_for(drawn, task_of(drawn, path[i]), task_of(drawn, path[i - 1])));
  }
  RC_ASSERT(is_near(sum, step_s));
}

RC_GTEST_PROP(CriticalPath, AndEachRankSumToTheStep, ()) {
  const DrawnPath drawn = drawn_path();
  const Report& report = drawn.made.report;
  const double slack = 1e-9 * report.step_time_s;
  RC_ASSERT(std::abs(report.time.sum() - report.step_time_s) <= slack);
  RC_ASSERT(std::abs(report.mean_time.sum() - report.step_time_s) <= slack);
  RC_ASSERT(report.time.bubble == 0);
  RC_ASSERT(report.ranks.size() == drawn.made.timeline.ranks.size());
  for (const RankShares& rank : report.ranks)
    RC_ASSERT(std::abs(rank.time.sum() - report.step_time_s) <= slack);
  const IdleShares idle = idle_shares(report);
  RC_ASSERT(std::abs(idle.bubble + idle.waiting - report.bubble_mean) <= 1e-9);
}

// (m + p - 1)(F + B) (Narayanan et al. 2021, section 2.2.1): while one rank fills or drains, another
// computes.
TEST(CriticalPath, OfEqualStagesIsComputeAlone) {
  for (const ScheduleName schedule : {ScheduleName::gpipe, ScheduleName::one_f_one_b})
    for (const int pp : {1, 2, 4, 7})
      for (const int microbatches : {7, 12}) {
        Plan plan = small_plan(pp, 1, microbatches);
        plan.schedule = schedule;
        const Report report = make_case(plan, Durations{1, 2, 0, 0, 0}).report;
        const double step_s = 3.0 * (microbatches + pp - 1);
        EXPECT_DOUBLE_EQ(report.step_time_s, step_s);
        EXPECT_NEAR(report.time.compute, 0.75 * step_s, 1e-9);  // small_times()
        EXPECT_NEAR(report.time.exposed_tp, 0.25 * step_s, 1e-9);
        EXPECT_NEAR(report.mean_time.bubble, 3.0 * (pp - 1), 1e-9);
      }
}

// GPipe with messages of 0.5 s: down, m forwards and backwards of the last rank, up.
TEST(CriticalPath, ExposesTheMessagesThatFillAndDrain) {
  Plan plan = small_plan(3, 1, 4);
  plan.schedule = ScheduleName::gpipe;
  plan.overlap_p2p = true;
  const Report report = make_case(plan, Durations{1, 2, 0.5, 0, 0}).report;
  EXPECT_DOUBLE_EQ(report.step_time_s, 3 * (4 + 2) + 4 * 0.5);
  EXPECT_NEAR(report.time.exposed_pp, 2, 1e-9);
  EXPECT_EQ(report.time.bubble, 0);
}

// One rank is heavier than the others. Its time lies on the path; its neighbour's wait does not.
TEST(CriticalPath, LiesOnTheRankThatSetsThePace) {
  const Plan plan = small_plan(4, 1, 16);
  const Schedule schedule = full_schedule(plan);
  const Timeline timeline = walk(schedule, plan, [](const Op& op) {
    if (!is_compute(op.kind)) return 0.0;
    return (op.kind == OpKind::forward ? 1.0 : 2.0) * (op.stage == 2 ? 2 : 1) / op.parts;
  });
  OpTimes times = small_times(plan);
  TimeParts experts;
  experts.compute = experts.ep = 1;
  times.stages[2] = {experts, experts, experts};
  const Model model = small_model();
  const Report report = make_report(timeline, schedule, derive_tasks(schedule, plan), model, plan,
                                    make_work(model, plan), times, small_facts(plan));
  EXPECT_EQ(report.critical_rank, 2);
  EXPECT_GT(report.time.exposed_ep, 0.4 * report.step_time_s);
  EXPECT_EQ(report.time.bubble, 0);
  EXPECT_GT(report.ranks[0].time.bubble, 0.4 * report.step_time_s);
}

// A measured timeline has gaps, and clocks that do not quite agree.
TEST(CriticalPath, ShowsGapsOfTheHostAsWhatTheyAre) {
  const Plan plan = small_plan(2, 1, 2);
  Case made = make_case(plan, Durations{1, 2, 0, 0, 0});
  for (TimelineRank& rank : made.timeline.ranks)
    for (Span& span : rank.spans) span = {1.5 * span.begin + 0.25, 1.5 * span.begin + 0.25 + span.seconds()};
  const Tasks tasks = derive_tasks(made.schedule, plan);
  const Report report = make_report(made.timeline, made.schedule, tasks, made.model, plan, made.work,
                                    small_times(plan), small_facts(plan));
  EXPECT_NEAR(report.time.sum(), report.step_time_s, 1e-12);
  EXPECT_NEAR(report.time.compute + report.time.exposed_tp, 9, 1e-12);
  EXPECT_NEAR(report.time.bubble, report.step_time_s - 9, 1e-12);
}

TEST(CriticalPath, OfOverlappingSpansStillSumsToTheStep) {
  const Plan plan = small_plan(3, 1, 4);
  Case made = make_case(plan, Durations{1, 2, 0.25, 0, 0});
  for (TimelineRank& rank : made.timeline.ranks)
    for (Span& span : rank.spans) span.end += 0.125;
  const Tasks tasks = derive_tasks(made.schedule, plan);
  const std::vector<PathSegment> path = critical_path(made.timeline, made.schedule, tasks, plan.one_queue);
  for (std::size_t i = 1; i < path.size(); ++i) EXPECT_EQ(path[i - 1].end, path[i].begin);
  const RankTime time = path_time(path, made.timeline, made.schedule, small_times(plan));
  EXPECT_NEAR(time.time.sum(), made.timeline.end(), 1e-12);
}

// Op lists that end early, as those of a failed run.
TEST(CriticalPath, OfListsCutShortIsFound) {
  const Plan plan = small_plan(2, 1, 4);
  Case made = make_case(plan, Durations{1, 2, 0.1, 0, 0});
  const Tasks tasks = derive_tasks(made.schedule, plan);
  Schedule cut = made.schedule;
  for (std::size_t r = 0; r < cut.ranks.size(); ++r) {
    RankOps& list = cut.ranks[r] = {};
    const RankOps& all = made.schedule.ranks[r];
    for (std::size_t op = 0; op < all.size() / (r + 2); ++op) list.add(all[op], all.waits(all[op]));
    made.timeline.ranks[r].spans.resize(list.size());
  }
  const Report report = make_report(made.timeline, cut, tasks, made.model, plan, made.work, small_times(plan),
                                    small_facts(plan));
  EXPECT_NEAR(report.time.sum(), report.step_time_s, 1e-12);
}

// Ranks that step on their own: an iteration is the longest rank's, and so is the path.
TEST(CriticalPath, WithoutASynchronousStepIsTheLongestRanks) {
  Plan plan = small_plan(4, 1, 8);
  plan.schedule = ScheduleName::zb_h2;
  plan.sync_step = false;
  const Report report = make_case(plan, Durations{1, 1, 0.1, 0, 0.2}).report;
  EXPECT_NEAR(report.time.sum(), report.step_time_s, 1e-9);
  for (const RankShares& rank : report.ranks) EXPECT_NEAR(rank.time.sum(), report.step_time_s, 1e-9);
}

// A reduction concurrent with the backward pass is exposed only while nothing is computed.
TEST(CriticalPath, HidesWhatItsRankComputesBeside) {
  Plan plan = small_plan(1, 1, 1, 2);
  const Report report = make_case(plan, Durations{1, 2, 0, 3, 0}).report;
  // Backward in two parts, each followed by its bucket: 1 + 1 + 3 + 3.
  EXPECT_DOUBLE_EQ(report.step_time_s, 8);
  EXPECT_DOUBLE_EQ(report.time.exposed_dp, 5);
  EXPECT_DOUBLE_EQ(report.time.compute + report.time.exposed_tp, 3);
}

}  // namespace
}  // namespace rehearse
