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

// Adds an order to the `most` best ones, ascending by end, each end once.
void keep(std::vector<FoundOrder>& best, const RankOrders& orders, Ticks end, std::size_t most);

class RuleSearch {
 public:
  // Keeps a reference.
  RuleSearch(const OrderProblem& problem, std::uint64_t seed);

  // Draws rules at random, then changes the best ones; until it has visited so many passes.
  void sample(std::int64_t work);
  void climb(std::int64_t work);

  const std::vector<FoundOrder>& best() const { return best_; }
  // Of best(): the rules, with what depends on the number of microbatches for as many as `to` has.
  std::vector<GreedyRules> rules_for(const OrderProblem& to) const;

  // One greedy pass costs as much as so many visits of the clock.
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
