#include "search/order/unroll.h"

#include <algorithm>

namespace rehearse {

namespace {

// The position at which every stage of the rank has run `period` more of F and of B or I, and has as many W
// waiting as at `from`. The size of the order where there is none.
std::size_t end_of_period(const RankOrder& order, std::size_t from, int period, int stages,
                          int stages_of_rank) {
  std::vector<int> forwards(static_cast<std::size_t>(stages)), gradients(forwards), waiting(forwards);
  int open = stages_of_rank;  // stages that are not at the end of the period
  const auto is_through = [&](std::size_t s) {
    return forwards[s] == period && gradients[s] == period && waiting[s] == 0;
  };
  for (std::size_t at = from; at < order.size(); ++at) {
    const auto s = static_cast<std::size_t>(stage_of_pass(order[at]));
    if (is_through(s)) ++open;
    const Pass kind = kind_of_pass(order[at]);
    if (kind == kForward) ++forwards[s];
    if (takes_gradient(order[at])) ++gradients[s];
    if (kind == kInput) ++waiting[s];
    if (kind == kWeight) --waiting[s];
    if (is_through(s)) --open;
    if (open == 0) return at + 1;
  }
  return order.size();
}

}  // namespace

std::optional<RankOrders> unroll(const OrderProblem& problem, const RankOrders& orders,
                                 const OrderClock& clock, Ticks cut, int period, int microbatches) {
  const int more = microbatches - problem.microbatches;
  if (period < 1 || more < 0 || more % period != 0) return std::nullopt;
  RankOrders result;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    const RankOrder& order = orders[static_cast<std::size_t>(rank)];
    std::size_t from = 0;
    while (from < order.size() && clock.begin(rank, from) < cut) ++from;
    const auto own = std::ranges::count(problem.rank_of, rank);
    const std::size_t to = end_of_period(order, from, period, problem.stage_count(), static_cast<int>(own));
    if (to == order.size()) return std::nullopt;
    const auto at = [&](std::size_t index) { return order.begin() + static_cast<std::ptrdiff_t>(index); };
    RankOrder& longer = result.emplace_back(order.begin(), at(to));
    for (int i = 0; i < more / period; ++i) longer.insert(longer.end(), at(from), at(to));
    longer.insert(longer.end(), at(to), order.end());
  }
  return result;
}

}  // namespace rehearse
