// In which order should each rank run F, B, I and W, given these times and this memory?
//
// Named schedules are the first candidates, so the result is never slower than the best of them that fits. A
// greedy scheduler tries many rules; the best orders are then annealed. With many microbatches, the search
// runs on few and repeats a period of the order found. Work is counted instead of time, and random numbers
// are our own. So one seed gives one result on every machine.
#pragma once

#include <functional>
#include <vector>

#include "search/order/rule_search.h"

namespace rehearse {

// Passes that one core of a server of 2020 or later visits in a second. Work is counted in passes.
inline constexpr double kVisitsPerSecond = 100e6;

struct OrderSearch {
  std::uint64_t seed = 1;
  std::int64_t work = static_cast<std::int64_t>(10 * kVisitsPerSecond);
  std::size_t finalists = 4;
  // Called now and then. When it returns true, the best order so far is the result.
  std::function<bool()> is_stopped = [] { return false; };
};

// The best orders, fastest first, each with its own end: at most `finalists`. `named`: candidates of another
// origin; those that do not fit are ignored. Empty where nothing fits.
std::vector<FoundOrder> find_orders(const OrderProblem& problem, const std::vector<RankOrders>& named,
                                    const OrderSearch& search);

}  // namespace rehearse
