#include "search/order/rule_search.h"

#include <algorithm>

namespace rehearse {

namespace {

constexpr std::size_t kKept = 6;

}  // namespace

void keep(std::vector<FoundOrder>& best, const RankOrders& orders, Ticks end, std::size_t most) {
  if (end >= kNever || (best.size() >= most && end >= best.back().end)) return;
  const auto place = std::ranges::lower_bound(best, end, {}, &FoundOrder::end);
  if (place != best.end() && place->end == end) return;
  best.insert(place, FoundOrder{orders, end});
  if (best.size() > most) best.pop_back();
}

RuleSearch::RuleSearch(const OrderProblem& problem, std::uint64_t seed)
    : problem_(problem),
      greedy_(problem),
      clock_(problem),
      random_(seed),
      chunks_(std::max(1, problem.stage_count() / problem.ranks)),
      backwards_(chunks_ * problem.microbatches) {}

Ticks RuleSearch::try_out(const GreedyRules& rules) {
  std::int64_t passes = 0;
  Ticks end = greedy_.run(rules);
  for (const RankOrder& order : greedy_.orders()) passes += static_cast<std::int64_t>(order.size());
  if (end < kNever) end = clock_.run(greedy_.orders());
  work_ += (kVisits + 1) * passes + 64;
  if (end >= kNever) return kNever;
  if (tried_.size() < kKept || end < tried_.back().end) {
    const auto place = std::ranges::lower_bound(tried_, end, {}, &Tried::end);
    if (place == tried_.end() || place->end != end) tried_.insert(place, {rules, end});
    if (tried_.size() > kKept) tried_.pop_back();
    keep(best_, greedy_.orders(), end, kKept);
  }
  return end;
}

void RuleSearch::split_at_random(GreedyRules& rules) {
  const auto ranks = static_cast<std::size_t>(problem_.ranks);
  rules.split_from.assign(ranks, 0);
  rules.split_to.assign(ranks, 0);
  rules.split_last.assign(ranks, 0);
  switch (random_.below(5)) {
    case 0:
      break;
    case 1:
      rules.split_to.assign(ranks, backwards_);
      break;
    case 2: {
      const int from = random_.below(backwards_), count = random_.below(backwards_) / 2;
      rules.split_from.assign(ranks, from);
      rules.split_to.assign(ranks, from + count);
      break;
    }
    default: {
      const int last = random_.below(4 * problem_.ranks + 1), slope = random_.below(5) - 2;
      for (std::size_t r = 0; r < ranks; ++r)
        rules.split_last[r] = std::max(0, last + slope * static_cast<int>(r));
    }
  }
}

GreedyRules RuleSearch::draw() {
  const int ranks = problem_.ranks, microbatches = problem_.microbatches;
  GreedyRules rules;
  const int least = std::min(ranks, microbatches);
  const int kind = random_.below(4);
  rules.group = kind == 0   ? microbatches
                : kind == 1 ? 1 + random_.below(microbatches)
                            : least + random_.below(std::min(microbatches - least, 2 * ranks) + 1);
  rules.group_back = random_.one_in(3) ? least + random_.below(microbatches - least + 1) : rules.group;
  const int base = random_.below(4);
  const int more = random_.below(2 * ranks + 1), slope = random_.below(4);
  const int drawn = 1 + random_.below(backwards_);
  for (int rank = 0; rank < ranks; ++rank) {
    const int behind = ranks - 1 - rank;
    int depth = backwards_;
    if (base == 1) depth = drawn + slope * behind;
    if (base > 1) depth = (chunks_ - 1) * rules.group + 1 + more + slope * behind;
    rules.depth.push_back(std::clamp(depth, 1, backwards_));
  }
  rules.slack = random_.one_in(2) ? 0 : random_.below(ranks + 1);
  rules.patience = random_.below(9);
  split_at_random(rules);
  return rules;
}

void RuleSearch::change(GreedyRules& rules) {
  const auto rank = static_cast<std::size_t>(random_.below(problem_.ranks));
  const int by = random_.few(6) * (random_.one_in(2) ? 1 : -1);
  const auto shift = [&](std::vector<int>& values, int least, int most) {
    const int which = random_.below(4);
    for (std::size_t r = 0; r < values.size(); ++r) {
      const bool is_meant = which == 0 || (which == 1 && r >= rank) || (which == 2 && r <= rank) || r == rank;
      if (is_meant) values[r] = std::clamp(values[r] + by, least, most);
    }
  };
  switch (random_.below(10)) {
    case 0:
      rules.group = std::clamp(rules.group + by, 1, problem_.microbatches);
      break;
    case 1:
      rules.group_back = std::clamp(rules.group_back + by, 1, problem_.microbatches);
      break;
    case 2:
    case 3:
    case 4:
      return shift(rules.depth, 1, backwards_);
    case 5:
    case 6:
      return shift(rules.split_last, 0, backwards_);
    case 7:
      return shift(random_.one_in(2) ? rules.split_from : rules.split_to, 0, backwards_);
    case 8:
      rules.slack = std::clamp(rules.slack + by, 0, backwards_);
      break;
    default:
      rules.patience = random_.below(9);
  }
}

void RuleSearch::sample(std::int64_t work) {
  for (const std::int64_t until = work_ + work; work_ < until;) try_out(draw());
}

void RuleSearch::climb(std::int64_t work) {
  const std::int64_t begin = work_;
  if (tried_.empty()) return;
  const std::size_t chains = std::min<std::size_t>(3, tried_.size());
  std::vector<Tried> starts(tried_.begin(), tried_.begin() + static_cast<std::ptrdiff_t>(chains));
  for (std::size_t chain = 0; chain < chains; ++chain) {
    Tried now = starts[chain];
    const std::int64_t share = work / static_cast<std::int64_t>(chains),
                       from = begin + share * static_cast<std::int64_t>(chain);
    while (work_ < from + share) {
      GreedyRules next = now.rules;
      for (int changes = random_.few(3); changes > 0; --changes) change(next);
      const Ticks end = try_out(next);
      // The mean slowdown that is kept falls from 500 to 0 millionths.
      const Ticks ppm =
          500 * (from + share - std::min(work_, from + share)) / std::max<std::int64_t>(1, share);
      if (end <= now.end + random_.exponential(now.end / 1'000'000 * ppm)) now = {std::move(next), end};
    }
  }
}

std::vector<GreedyRules> RuleSearch::rules_for(const OrderProblem& to) const {
  std::vector<GreedyRules> all;
  const int more = chunks_ * (to.microbatches - problem_.microbatches);
  for (const Tried& tried : tried_) {
    GreedyRules rules = tried.rules;
    for (int* group : {&rules.group, &rules.group_back})
      if (*group == problem_.microbatches) *group = to.microbatches;
    for (int& split : rules.split_to)
      if (split >= backwards_) split += more;
    for (int& split : rules.split_last)
      if (split >= backwards_) split += more;
    for (int& depth : rules.depth)
      if (depth >= backwards_) depth += more;
    all.push_back(std::move(rules));
  }
  return all;
}

}  // namespace rehearse
