// No order at all ends before the bound: every order of small pipelines is run.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "search/order/find_orders.h"
#include "search/order/lower_bound.h"

namespace rehearse {
namespace {

struct Shape {
  int ranks, chunks, microbatches;
  bool is_v = false;
};

// Costs that make each term of the bound matter in some problem. Messages are slow or fast. Memory holds all
// activations or few. W takes little or much memory and time. B is shorter or longer than I + W.
OrderProblem drawn(const Shape& shape, std::mt19937& random) {
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  OrderProblem problem;
  problem.ranks = shape.ranks;
  problem.microbatches = shape.microbatches;
  const int stages = shape.ranks * shape.chunks;
  for (int s = 0; s < stages; ++s)
    problem.rank_of.push_back(shape.is_v && s >= shape.ranks ? stages - 1 - s : s % shape.ranks);
  const int wide = below(3);
  for (int s = 0; s < stages; ++s) {
    const auto lies_elsewhere = [&](int other) {
      return other >= 0 && other < stages &&
             problem.rank_of[static_cast<std::size_t>(s)] != problem.rank_of[static_cast<std::size_t>(other)];
    };
    StageCosts& stage = problem.stages.emplace_back();
    stage.forward = 1 + below(wide > 0 ? 100 : 20);
    stage.input = 1 + below(100);
    stage.weight = below(wide == 2 ? 200 : 60);
    stage.backward =
        below(4) > 0 ? std::max<Ticks>(1, stage.input + stage.weight - below(40)) : 1 + below(200);
    if (lies_elsewhere(s + 1)) stage.to_next = below(60);
    if (lies_elsewhere(s - 1)) stage.to_previous = below(60);
    stage.saved = 1 + below(6);
    stage.kept = below(7);
    stage.forward_peak = stage.saved + below(3);
    stage.backward_peak = stage.saved + below(3);
    stage.input_peak = std::max(stage.saved, stage.kept) + below(3);
    stage.weight_peak = stage.kept + below(3);
    if (below(2) > 0) stage.reduction = below(150);
    stage.buckets = 1 + below(4);
  }
  const int most = 8 * shape.chunks * shape.microbatches;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    problem.step.push_back(below(2) > 0 ? below(80) : 0);
    problem.capacity.push_back(below(3) == 0 ? 1e9 : 2 + below(most));
  }
  return problem;
}

// Every order of one rank that keeps the rules within its memory.
class OrdersOfRank {
 public:
  OrdersOfRank(const OrderProblem& problem, int rank)
      : problem_(problem),
        bytes_(pass_bytes(problem)),
        capacity_(problem.capacity[static_cast<std::size_t>(rank)]),
        done_(4 * problem.stages.size()) {
    for (int s = 0; s < problem.stage_count(); ++s)
      if (problem.rank_of[static_cast<std::size_t>(s)] == rank) own_.push_back(s);
    extend(0);
  }
  const std::vector<RankOrder>& all() const { return all_; }

 private:
  int done(int stage, Pass kind) const { return done_[pass_of(stage, kind)]; }
  int gradients(int stage) const { return done(stage, kBackward) + done(stage, kInput); }
  bool may_follow(int stage, Pass kind) const {
    if (kind == kForward) return done(stage, kForward) < problem_.microbatches;
    if (kind == kWeight) return done(stage, kWeight) < done(stage, kInput);
    return gradients(stage) < done(stage, kForward);
  }

  void extend(double live) {
    const bool is_whole = std::ranges::all_of(own_, [&](int stage) {
      return gradients(stage) == problem_.microbatches && done(stage, kWeight) == done(stage, kInput);
    });
    if (is_whole) return all_.push_back(order_);
    for (const int stage : own_)
      for (Pass kind = 0; kind < 4; ++kind) {
        const Pass pass = pass_of(stage, kind);
        if (!may_follow(stage, kind) || live + bytes_[pass].peak > capacity_) continue;
        ++done_[pass];
        order_.push_back(pass);
        extend(live + bytes_[pass].change);
        order_.pop_back();
        --done_[pass];
      }
  }

  const OrderProblem& problem_;
  std::vector<PassBytes> bytes_;
  double capacity_;
  std::vector<int> done_, own_;  // by pass; stages
  RankOrder order_;
  std::vector<RankOrder> all_;
};

constexpr std::size_t kMaxOrders = 20'000;  // of a problem, so that the test takes seconds

// The end of the fastest order; kNever where none fits, or where there are too many.
Ticks shortest(const OrderProblem& problem) {
  std::vector<std::vector<RankOrder>> of_rank;
  std::size_t count = 1;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    of_rank.push_back(OrdersOfRank(problem, rank).all());
    count *= of_rank.back().size();
  }
  if (count > kMaxOrders) return kNever;
  OrderClock clock(problem);
  RankOrders orders(of_rank.size());
  Ticks best = kNever;
  const std::function<void(std::size_t)> choose = [&](std::size_t rank) {
    if (rank == orders.size()) {
      best = std::min(best, clock.run(orders));
      return;
    }
    for (const RankOrder& each : of_rank[rank]) {
      orders[rank] = each;
      choose(rank + 1);
    }
  };
  choose(0);
  return best;
}

class LowerBoundOf : public ::testing::TestWithParam<Shape> {};

TEST_P(LowerBoundOf, IsUndercutByNoOrderAtAll) {
  int known = 0;
  Ticks bounds = 0, ends = 0;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const OrderProblem problem = drawn(GetParam(), random);
    const Ticks best = shortest(problem), bound = lower_bound(problem);
    if (best == kNever) continue;
    ++known;
    bounds += bound;
    ends += best;
    EXPECT_LE(bound, best) << seed;
    for (const FoundOrder& each : find_orders(problem, {}, {.work = 200'000}))
      EXPECT_GE(each.end, best) << seed;
  }
  EXPECT_GE(known, 20);
  EXPECT_GE(bounds, ends * 7 / 10);  // a bound far below would pass the rest
}

INSTANTIATE_TEST_SUITE_P(Shapes, LowerBoundOf,
                         ::testing::Values(Shape{1, 1, 3}, Shape{2, 1, 2}, Shape{2, 1, 3}, Shape{3, 1, 2},
                                           Shape{4, 1, 1}, Shape{2, 2, 1}, Shape{2, 2, 1, true}));

}  // namespace
}  // namespace rehearse
