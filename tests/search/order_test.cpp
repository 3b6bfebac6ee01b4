#include "search/order/find_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "order_cases.h"
#include "sanitized.h"
#include "schedule/check.h"
#include "schedule/passes.h"
#include "search/order/lower_bound.h"
#include "search/order/unroll.h"

namespace rehearse {
namespace {

constexpr std::int64_t kLittle = 8'000'000;  // passes: less than a tenth of a second

OrderSearch little() {
  return {.seed = 7, .work = kLittle};
}

// The fastest of the named schedules that fit; kNever for none.
Ticks best_named(const OrderCase& given) {
  OrderClock clock(given.problem);
  Ticks best = kNever;
  for (const RankOrders& orders : given.named)
    if (fits(orders, given.problem)) best = std::min(best, clock.run(orders));
  return best;
}

// Ends of all passes, found by going through the lists until nothing changes: no code of the clock's.
Ticks end_by_relaxation(const RankOrders& orders, const OrderProblem& problem) {
  const std::size_t m = static_cast<std::size_t>(problem.microbatches);
  std::vector<Ticks> forward(problem.stages.size() * m), gradient(forward);
  std::vector<Ticks> rank_end(orders.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t r = 0; r < orders.size(); ++r) {
      std::vector<std::size_t> forwards(problem.stages.size()), gradients(forwards);
      Ticks now = 0;
      for (const Pass pass : orders[r]) {
        const auto s = static_cast<std::size_t>(stage_of_pass(pass));
        const StageCosts& stage = problem.stages[s];
        if (kind_of_pass(pass) == kWeight) {
          now += stage.weight;
          continue;
        }
        const bool ahead = kind_of_pass(pass) == kForward;
        const std::size_t microbatch = ahead ? forwards[s]++ : gradients[s]++;
        Ticks input = 0;
        if (ahead && s > 0) input = forward[(s - 1) * m + microbatch] + problem.stages[s - 1].to_next;
        if (!ahead && s + 1 < problem.stages.size())
          input = gradient[(s + 1) * m + microbatch] + problem.stages[s + 1].to_previous;
        now = std::max(now, input) + (ahead                             ? stage.forward
                                      : kind_of_pass(pass) == kBackward ? stage.backward
                                                                        : stage.input);
        Ticks& known = (ahead ? forward : gradient)[s * m + microbatch];
        changed |= known != now;
        known = now;
      }
      rank_end[r] = now;
    }
  }
  return *std::ranges::max_element(rank_end);
}

class OrderOf : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(OrderOf, TheClockSaysWhatRelaxationFinds) {
  OrderCase given = order_case(GetParam());
  for (StageCosts& stage : given.problem.stages) stage.reduction = 0;
  std::ranges::fill(given.problem.step, 0);
  OrderClock clock(given.problem);
  for (const RankOrders& orders : given.named) {
    EXPECT_EQ(clock.run(orders), end_by_relaxation(orders, given.problem));
    clock.run_back(orders);
    Ticks longest = 0;
    for (int rank = 0; rank < given.problem.ranks; ++rank)
      for (std::size_t at = 0; at < orders[static_cast<std::size_t>(rank)].size(); ++at)
        longest = std::max(longest, clock.begin(rank, at) + clock.way(rank, at));
    EXPECT_EQ(longest, clock.end());
    EXPECT_FALSE(clock.critical().empty());
  }
}

TEST_P(OrderOf, TurnsWhereTheCriticalPathComesFromAnotherRankOrLeavesForOne) {
  const OrderCase given = order_case(GetParam());
  OrderClock clock(given.problem);
  for (const RankOrders& orders : given.named) {
    clock.run(orders);
    clock.run_back(orders);
    const auto is_critical = [&](int rank, std::size_t at) {
      return clock.begin(rank, at) + clock.way(rank, at) == clock.end();
    };
    std::size_t turns = 0;
    for (int rank = 0; rank < given.problem.ranks; ++rank) {
      const RankOrder& order = orders[static_cast<std::size_t>(rank)];
      for (std::size_t at = 0; at < order.size(); ++at) {
        if (!is_critical(rank, at)) continue;
        const Ticks end = clock.begin(rank, at) + clock.ticks(order[at]);
        const Ticks behind = at + 1 < order.size() ? clock.way(rank, at + 1) : clock.tail(rank);
        const Ticks free = at > 0 ? clock.begin(rank, at - 1) + clock.ticks(order[at - 1]) : 0;
        turns += free < clock.begin(rank, at) || end + behind < clock.end();
      }
    }
    EXPECT_EQ(clock.turns().size(), turns);
    for (const OrderClock::Place& turn : clock.turns())
      EXPECT_TRUE(is_critical(turn.rank, static_cast<std::size_t>(turn.at)));
  }
}

TEST_P(OrderOf, IsNeverSlowerThanANamedScheduleAndNeverFasterThanTheBound) {
  const OrderCase given = order_case(GetParam());
  const std::vector<FoundOrder> found = find_orders(given.problem, given.named, little());
  const Ticks named = best_named(given), bound = lower_bound(given.problem);
  if (named < kNever) {
    ASSERT_FALSE(found.empty());
    EXPECT_LE(found.front().end, named);
    EXPECT_LE(bound, named);
  }
  OrderClock clock(given.problem);
  for (const FoundOrder& each : found) {
    EXPECT_LE(bound, each.end);
    EXPECT_TRUE(fits(each.orders, given.problem));
    EXPECT_EQ(clock.run(each.orders), each.end);
  }
}

TEST_P(OrderOf, PassesTheCheck) {
  const OrderCase given = order_case(GetParam());
  for (const FoundOrder& each : find_orders(given.problem, given.named, little())) {
    const Schedule order = schedule_of(each.orders, given.problem);
    EXPECT_EQ(check_computation(order, given.plan), std::vector<std::string>());
    EXPECT_EQ(check_schedule(with_transfers(order, given.plan), given.plan), std::vector<std::string>());
  }
}

TEST_P(OrderOf, IsTheSameForTheSameSeed) {
  if (kThreadSanitizer) GTEST_SKIP();
  const OrderCase given = order_case(GetParam());
  const auto once = find_orders(given.problem, given.named, little());
  const auto again = find_orders(given.problem, given.named, little());
  ASSERT_EQ(once.size(), again.size());
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].orders, again[i].orders);
}

INSTANTIATE_TEST_SUITE_P(Drawn, OrderOf, ::testing::Range(std::uint32_t{1}, std::uint32_t{25}));

struct Uniform {
  int ranks, microbatches, chunks;
  Laid laid;
};
class UniformOrder : public ::testing::TestWithParam<Uniform> {};

// ZB-H1 and ZB-V end when the last rank, which begins last, has worked without idle time. No order is faster
// (Qi et al. 2023, sections 2 and 6).
TEST_P(UniformOrder, IsTheKnownOptimumOfZeroBubble) {
  const auto [ranks, microbatches, chunks, laid] = GetParam();
  const OrderCase given = uniform_case(ranks, microbatches, chunks, laid);
  const Ticks optimum = ticks_of(3) * microbatches + (ranks - 1) * ticks_of(1) / chunks;
  EXPECT_EQ(lower_bound(given.problem), optimum);
  const auto found = find_orders(given.problem, given.named, {.work = 1});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().end, optimum);
}

INSTANTIATE_TEST_SUITE_P(Ranks, UniformOrder,
                         ::testing::Values(Uniform{4, 12, 2, Laid::v}, Uniform{8, 32, 2, Laid::v},
                                           Uniform{8, 96, 2, Laid::v}, Uniform{16, 192, 2, Laid::v},
                                           Uniform{32, 96, 2, Laid::v}, Uniform{64, 512, 2, Laid::v},
                                           Uniform{4, 12, 1, Laid::loop}, Uniform{8, 32, 1, Laid::loop},
                                           Uniform{8, 96, 1, Laid::loop}, Uniform{16, 192, 1, Laid::loop},
                                           Uniform{32, 96, 1, Laid::loop}, Uniform{64, 512, 1, Laid::loop}));

TEST(UniformOrderWithoutSeeds, ReachesTheOptimumByItself) {
  const OrderCase given = uniform_case(4, 12, 2, Laid::v);
  const auto found = find_orders(given.problem, {}, {.work = 100'000'000});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().end, lower_bound(given.problem));
}

class UniformOrderInTheMemoryOf : public ::testing::TestWithParam<Uniform> {};

// Within the memory of each named schedule in turn, whichever of them is then the fastest.
TEST_P(UniformOrderInTheMemoryOf, ANamedScheduleIsNoSlower) {
  const auto [ranks, microbatches, chunks, laid] = GetParam();
  OrderCase given = uniform_case(ranks, microbatches, chunks, laid);
  const std::vector<RankOrders> named = given.named;
  const std::size_t step = std::max<std::size_t>(1, named.size() / 4);  // of the groups of interleaving some
  for (std::size_t i = 0; i < named.size(); i += step) {
    limit_to(given, named[i]);
    const Ticks best = best_named(given);
    const auto found = find_orders(given.problem, named, little());
    ASSERT_FALSE(found.empty());
    EXPECT_LE(found.front().end, best);
    EXPECT_LE(lower_bound(given.problem), found.front().end);
    EXPECT_TRUE(fits(found.front().orders, given.problem));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, UniformOrderInTheMemoryOf,
                         ::testing::Values(Uniform{4, 12, 1, Laid::loop}, Uniform{8, 32, 1, Laid::loop},
                                           Uniform{16, 64, 1, Laid::loop}, Uniform{32, 64, 1, Laid::loop},
                                           Uniform{64, 128, 1, Laid::loop}, Uniform{4, 12, 2, Laid::loop},
                                           Uniform{8, 32, 2, Laid::loop}, Uniform{16, 48, 3, Laid::loop},
                                           Uniform{32, 64, 2, Laid::loop}, Uniform{64, 128, 2, Laid::loop},
                                           Uniform{4, 12, 2, Laid::v}, Uniform{8, 32, 2, Laid::v},
                                           Uniform{16, 64, 2, Laid::v}, Uniform{32, 96, 2, Laid::v},
                                           Uniform{64, 192, 2, Laid::v}));

TEST(LeanestOrders, RunWhereNoNamedScheduleFits) {
  for (std::uint32_t seed = 1; seed < 25; ++seed) {
    OrderCase given = order_case(seed);
    const RankOrders lean = leanest_orders(given.problem);
    limit_to(given, lean);
    const Schedule order = schedule_of(lean, given.problem);
    EXPECT_EQ(check_computation(order, given.plan), std::vector<std::string>());
    EXPECT_LT(OrderClock(given.problem).run(lean), kNever);
    const auto found = find_orders(given.problem, given.named, {.work = 1});
    ASSERT_FALSE(found.empty());
    EXPECT_TRUE(fits(found.front().orders, given.problem));
  }
}

TEST(UnrolledOrder, RunsEveryPassOnceAndHoldsNoMore) {
  const OrderCase few = uniform_case(4, 12, 2, Laid::v), many = uniform_case(4, 40, 2, Laid::v);
  OrderClock clock(few.problem), longer(many.problem);
  int unrolled = 0;
  for (const RankOrders& orders : few.named) {
    const Ticks end = clock.run(orders);
    for (int cut = 1; cut < 8; ++cut) {
      const auto more = unroll(few.problem, orders, clock, end / 16 * cut, 1, 40);
      if (!more) continue;
      ++unrolled;
      EXPECT_EQ(check_computation(schedule_of(*more, many.problem), many.plan), std::vector<std::string>());
      EXPECT_LT(longer.run(*more), kNever);
      const std::vector<PassBytes> bytes = pass_bytes(few.problem);
      for (std::size_t rank = 0; rank < orders.size(); ++rank)
        EXPECT_LE(peak_bytes((*more)[rank], bytes), peak_bytes(orders[rank], bytes));
    }
  }
  EXPECT_GT(unrolled, 0);
}

}  // namespace
}  // namespace rehearse
