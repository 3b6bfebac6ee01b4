#include "search/order/find_orders.h"

#include <algorithm>

#include "search/order/anneal.h"
#include "search/order/unroll.h"

namespace rehearse {

namespace {

constexpr std::int64_t kLongOrder = 24'000;  // passes

std::int64_t passes_of(const OrderProblem& problem) {
  return std::int64_t{2} * problem.stage_count() * problem.microbatches;
}

// Few microbatches that still show a steady state. The number of omitted ones is a multiple of the ranks.
int few_microbatches(const OrderProblem& problem) {
  const int few = 3 * problem.ranks + problem.microbatches % problem.ranks;
  return passes_of(problem) > kLongOrder ? std::min(few, problem.microbatches) : problem.microbatches;
}

class OrderFinder {
 public:
  OrderFinder(const OrderProblem& problem, const OrderSearch& search)
      : problem_(problem), search_(search), clock_(problem), bytes_(pass_bytes(problem)) {}

  void add(const RankOrders& orders) {
    for (std::size_t r = 0; r < orders.size(); ++r)
      if (peak_bytes(orders[r], bytes_) > problem_.capacity[r]) return;
    keep(best_, orders, clock_.run(orders), search_.finalists);
  }

  // Searches rules, then anneals, for the whole problem.
  void search_whole(std::int64_t work) {
    find_rules(problem_, work * 55 / 100);
    anneal(problem_, best_, work * 45 / 100);
  }

  // The same for fewer microbatches, whose orders are then unrolled.
  void search_few(int few, std::int64_t work) {
    OrderProblem part = problem_;
    part.microbatches = few;
    std::vector<FoundOrder> found;
    RuleSearch rules(part, search_.seed);
    run_rules(rules, work * 40 / 100);
    for (const FoundOrder& each : rules.best()) keep(found, each.orders, each.end, search_.finalists);
    if (!search_.is_stopped()) anneal(part, found, work * 40 / 100);
    Greedy whole(problem_);
    for (const GreedyRules& each : rules.rules_for(problem_)) {
      if (search_.is_stopped()) return;
      if (whole.run(each) < kNever) add(whole.orders());
    }
    for (const FoundOrder& each : found) unroll_all(part, each.orders);
    if (!search_.is_stopped()) anneal(problem_, best_, work * 20 / 100);
  }

  bool is_empty() const { return best_.empty(); }
  std::vector<FoundOrder> take() { return std::move(best_); }

 private:
  void run_rules(RuleSearch& rules, std::int64_t work) {
    constexpr int kParts = 20;
    for (int part = 0; part < kParts && !search_.is_stopped(); ++part)
      part < kParts * 2 / 5 ? rules.sample(work / kParts) : rules.climb(work / kParts);
  }

  void find_rules(const OrderProblem& problem, std::int64_t work) {
    RuleSearch rules(problem, search_.seed);
    run_rules(rules, work);
    for (const FoundOrder& each : rules.best()) keep(best_, each.orders, each.end, search_.finalists);
  }

  // Anneals all starts a little, then the best ones.
  void anneal(const OrderProblem& problem, std::vector<FoundOrder>& best, std::int64_t work) {
    const std::vector<FoundOrder> starts = best;
    std::uint64_t seed = search_.seed;
    const auto go = [&](const RankOrders& start, std::int64_t share, int hot_ppm) {
      if (search_.is_stopped()) return;
      Annealer annealer(problem, start);
      annealer.run({.seed = ++seed,
                    .work = share,
                    .hot_ppm = hot_ppm,
                    .cold_ppm = 2,
                    .is_stopped = search_.is_stopped});
      keep(best, annealer.best(), annealer.best_end(), search_.finalists);
    };
    const std::int64_t parts = 2 * static_cast<std::int64_t>(std::max<std::size_t>(1, starts.size()));
    for (const FoundOrder& start : starts) go(start.orders, work / parts, 100);
    for (int round = 0; round < 2 && !best.empty(); ++round)
      go(RankOrders(best.front().orders), work / 4, round == 0 ? 60 : 20);
  }

  void unroll_all(const OrderProblem& part, const RankOrders& orders) {
    constexpr int kCuts = 12, kMaxUnrolled = 24;
    OrderClock clock(part);
    const Ticks end = clock.run(orders);
    const int more = problem_.microbatches - part.microbatches;
    int unrolled = 0;
    for (int period = 1; period <= part.microbatches / 2; ++period) {
      if (more % period != 0) continue;
      for (int cut = 0; cut < kCuts && unrolled < kMaxUnrolled && !search_.is_stopped(); ++cut) {
        const Ticks from = end / 8 + end / 2 / kCuts * cut;
        const auto longer = unroll(part, orders, clock, from, period, problem_.microbatches);
        if (!longer) continue;
        ++unrolled;
        add(*longer);
      }
    }
  }

  const OrderProblem& problem_;
  const OrderSearch& search_;
  OrderClock clock_;
  std::vector<PassBytes> bytes_;
  std::vector<FoundOrder> best_;
};

}  // namespace

std::vector<FoundOrder> find_orders(const OrderProblem& problem, const std::vector<RankOrders>& named,
                                    const OrderSearch& search) {
  OrderFinder finding(problem, search);
  for (const RankOrders& orders : named) finding.add(orders);
  if (finding.is_empty()) finding.add(leanest_orders(problem));
  const int few = few_microbatches(problem);
  if (few < problem.microbatches)
    finding.search_few(few, search.work);
  else
    finding.search_whole(search.work);
  return finding.take();
}

}  // namespace rehearse
