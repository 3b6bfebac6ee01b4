// In which order should each rank run F, B, I and W, for these times and this memory?
//
// Named schedules are the first candidates: what is found is never slower than the best of them that fits. A
// greedy scheduler tries many rules; the best orders are then annealed. Of many microbatches few are
// searched, and a period of what was found is repeated. Work is counted, not time, and random numbers are
// our own: one seed gives one result on every machine.
#pragma once

#include <functional>
#include <vector>

#include "search/order/rule_search.h"

namespace rehearse {

// Passes visited in a second by one core of a server of 2020 or later; work is counted in them.
inline constexpr double kVisitsPerSecond = 100e6;

struct OrderSearch {
  std::uint64_t seed = 1;
  std::int64_t work = static_cast<std::int64_t>(10 * kVisitsPerSecond);
  std::size_t finalists = 4;
  // Asked now and then; the best so far is then the answer.
  std::function<bool()> is_stopped = [] { return false; };
};

// The best orders, fastest first, each with its own end: at most `finalists`. `named`: candidates of another
// origin; those that do not fit are left out. Empty where nothing fits.
std::vector<FoundOrder> find_orders(const OrderProblem& problem, const std::vector<RankOrders>& named,
                                    const OrderSearch& search);

}  // namespace rehearse
