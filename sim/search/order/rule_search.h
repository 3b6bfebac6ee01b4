// Which rules of the greedy scheduler lead to the shortest step?
#pragma once

#include <cstdint>
#include <vector>

#include "search/order/clock.h"
#include "search/order/greedy.h"
#include "search/order/random.h"

namespace rehearse {

struct FoundOrder {
  RankOrders orders;
  Ticks end = kNever;
};

// Adds an order to the `most` best ones, ascending by end, with one order for each end.
void keep(std::vector<FoundOrder>& best, const RankOrders& orders, Ticks end, std::size_t most);

class RuleSearch {
 public:
  // Keeps a reference to `problem`.
  RuleSearch(const OrderProblem& problem, std::uint64_t seed);

  // sample() draws rules at random, climb() changes the best ones. Each visits `work` passes.
  void sample(std::int64_t work);
  void climb(std::int64_t work);

  const std::vector<FoundOrder>& best() const { return best_; }
  // The rules of best(). Figures that depend on the number of microbatches are adapted to that of `to`.
  std::vector<GreedyRules> rules_for(const OrderProblem& to) const;

  // Cost of one greedy pass, in visits of the clock.
  static constexpr int kVisits = 16;

 private:
  struct Tried {
    GreedyRules rules;
    Ticks end;
  };
  GreedyRules draw();
  void change(GreedyRules& rules);
  void split_at_random(GreedyRules& rules);
  Ticks try_out(const GreedyRules& rules);

  const OrderProblem& problem_;
  Greedy greedy_;
  OrderClock clock_;
  OrderRandom random_;
  int chunks_, backwards_;  // of a rank
  std::int64_t work_ = 0;
  std::vector<Tried> tried_;  // the best, ascending
  std::vector<FoundOrder> best_;
};

}  // namespace rehearse
