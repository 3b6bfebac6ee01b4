// Every legal run ends, no sooner than it can, and its seconds add up.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "contention.h"
#include "result/shares.h"
#include "run.h"
#include "run/least_time.h"
#include "search/bounds.h"

namespace rehearse::properties {
namespace {

constexpr double kRounding = 1e-9;    // relative to the step
constexpr double kResolution = 1e-9;  // seconds: SimGrid ends flows together that end within it

Timeline must_end(const Run& run) {
  std::optional<Timeline> timeline = simulated(run);
  if (!timeline) RC_FAIL("the simulation does not end");
  require_fits(*timeline, run.ready.schedule);
  return std::move(*timeline);
}

// Seconds of the kernels and collectives that a rank computes with, as they are priced, one after the other.
double least_work(const Run& run, std::size_t instance) {
  const int rank = run.ready.tasks.instances[instance].pipeline_rank;
  double seconds = 0;
  for (const Op& op : run.ready.schedule.ranks[static_cast<std::size_t>(rank)].ops())
    if (op.stream == Stream::compute)
      seconds += priced_parts(op, rank, run.ready.prices.times).total() / op.parts;
  return seconds;
}

void takes_as_long_as_it_must(const Run& run, const Timeline& timeline) {
  const std::vector<int> transfers = transfers_in_a_row(run.ready.tasks, run.loads);
  const double slack = kRounding * run.reference.end() + kResolution * *std::ranges::max_element(transfers);
  RC_ASSERT(timeline.end() >= run.reference.end() - slack);
  RC_ASSERT(timeline.end() >= least_time(run.ready.tasks, run.loads));
  if (run.experiment.conditions.has_jitter()) return;  // ops may be shorter than priced
  for (const Timeline& each : {run.reference, timeline})
    for (std::size_t i = 0; i < each.ranks.size(); ++i) RC_ASSERT(each.end() >= least_work(run, i) - slack);
  // The search's bound is below the longest path.
  if (run.experiment.plan.sync_step)
    RC_ASSERT(longest_path_s(run.experiment) >=
              least_step_time(run.experiment.plan, run.ready.prices.times) - slack);
}

RC_GTEST_PROP(LegalRun, TakesItsLongestPathWhereNoTwoTasksMeetOnALink, ()) {
  const auto run = legal_run();
  const Loads& loads = run->loads;
  const bool alone = !meets_on_a_link(run->ready.tasks, loads, run->reference);
  RC_CLASSIFY(alone, "nothing contends");
  if (!alone) return;
  const Timeline timeline = must_end(*run);
  const std::vector<int> transfers = transfers_in_a_row(run->ready.tasks, loads);
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    for (std::size_t op = 0; op < timeline.ranks[i].spans.size(); ++op) {
      const Span span = timeline.ranks[i].spans[op], expected = run->reference.ranks[i].spans[op];
      const double slack = kRounding * run->reference.end() +
                           kResolution * transfers[run->ready.tasks.task(static_cast<int>(i), op)];
      RC_ASSERT(std::abs(span.begin - expected.begin) <= slack);
      RC_ASSERT(std::abs(span.end - expected.end) <= slack);
    }
  }
}

void accounts_for_every_step(const Run& run, const Timeline& timeline) {
  for (const TimelineRank& rank : timeline.ranks) {
    const RankOps& ops = run.ready.schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)];
    const TimeShares time =
        rank_time(rank, ops, run.ready.prices.times, timeline.end(), run.experiment.plan.one_queue).time;
    RC_ASSERT(std::abs(time.sum() - timeline.end()) <= kRounding * timeline.end());
    for (const double part :
         {time.compute, time.recompute, time.optimizer, time.bubble, time.exposed_tp, time.exposed_pp,
          time.exposed_dp, time.exposed_cp, time.exposed_ep, time.exposed_offload})
      RC_ASSERT(part >= -kRounding * timeline.end());
  }
}

// On the critical path no time goes by without an op of it: each begins when the one that it waits for ends.
void has_a_path_as_long_as_the_step(const Run& run, const Timeline& timeline) {
  const std::vector<PathSegment> path =
      critical_path(timeline, run.ready.schedule, run.ready.tasks, run.experiment.plan.one_queue);
  RC_ASSERT(!path.empty());
  RC_ASSERT(path.front().begin == 0 && path.back().end == timeline.end());
  for (std::size_t i = 0; i < path.size(); ++i) {
    RC_ASSERT(i == 0 || path[i - 1].end == path[i].begin);
    RC_ASSERT(path[i].op >= 0);
    const Span& span = timeline.ranks[path[i].rank].spans[static_cast<std::size_t>(path[i].op)];
    RC_ASSERT(std::abs(span.begin - path[i].begin) <= 1e-7 * timeline.end());
    RC_ASSERT(std::abs(span.end - path[i].end) <= 1e-7 * timeline.end());
  }
  const TimeShares time = path_time(path, timeline, run.ready.schedule, run.ready.prices.times).time;
  RC_ASSERT(std::abs(time.sum() - timeline.end()) <= kRounding * timeline.end());
  for (const double part : {time.compute, time.recompute, time.optimizer, time.exposed_tp, time.exposed_pp,
                            time.exposed_dp, time.exposed_cp, time.exposed_ep, time.exposed_offload})
    RC_ASSERT(part >= -kRounding * timeline.end());
  RC_ASSERT(time.bubble == 0);
}

void keeps_the_order_of_streams(const Run& run, const Timeline& timeline) {
  const double slack = kRounding * timeline.end();
  for (const TimelineRank& rank : timeline.ranks) {
    const RankOps& ops = run.ready.schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)];
    std::array<double, kStreams> free_from{};
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Span& span = rank.spans[i];
      double& stream = free_from[static_cast<std::size_t>(ops[i].stream)];
      RC_ASSERT(span.begin >= stream - slack);
      stream = span.end;
      for (const std::int32_t wait : ops.waits(ops[i]))
        RC_ASSERT(span.begin >= rank.spans[static_cast<std::size_t>(wait)].end - slack);
    }
  }
}

// One simulation for all.
RC_GTEST_PROP(LegalRun, EndsNoSoonerThanItCanInOrderAndWithItsStepAccountedFor, ()) {
  const auto run = legal_run();
  const Timeline timeline = must_end(*run);
  takes_as_long_as_it_must(*run, timeline);
  accounts_for_every_step(*run, timeline);
  has_a_path_as_long_as_the_step(*run, timeline);
  has_a_path_as_long_as_the_step(*run, run->reference);
  keeps_the_order_of_streams(*run, timeline);
}

}  // namespace
}  // namespace rehearse::properties
