#include "cost/balance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace rehearse {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Best[s][n]: the least of `join` over the costs of the first s stages, which hold the first n layers.
class Split {
 public:
  Split(const LayerCosts& costs, int stages)
      : sums_(costs.layers.size() + 1, 0),
        first_(costs.first),
        last_(costs.last),
        stages_(static_cast<std::size_t>(stages)) {
    for (std::size_t i = 0; i < costs.layers.size(); ++i) sums_[i + 1] = sums_[i] + costs.layers[i];
  }

  // `join` adds a stage's cost to the joined cost of the stages before it. kNever refuses the split.
  template <typename Join>
  double solve(Join join) {
    const std::size_t layers = sums_.size();
    best_.assign(layers, kNever);
    best_[0] = 0;
    from_.assign(stages_, std::vector<std::size_t>(layers, 0));
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      std::vector<double> next(layers, kNever);
      for (std::size_t end = 0; end < layers; ++end) {
        for (std::size_t begin = 0; begin <= end; ++begin) {
          const double joined = best_[begin] == kNever ? kNever : join(best_[begin], cost(stage, begin, end));
          if (joined >= next[end]) continue;
          next[end] = joined;
          from_[stage][end] = begin;
        }
      }
      best_ = next;
    }
    return best_.back();
  }

  std::vector<int> layers_per_stage() const {
    std::vector<int> split(stages_);
    std::size_t end = sums_.size() - 1;
    for (std::size_t stage = stages_; stage-- > 0; end = from_[stage][end])
      split[stage] = static_cast<int>(end - from_[stage][end]);
    return split;
  }

 private:
  double cost(std::size_t stage, std::size_t begin, std::size_t end) const {
    return sums_[end] - sums_[begin] + (stage == 0 ? first_ : 0) + (stage + 1 == stages_ ? last_ : 0);
  }

  std::vector<double> sums_;  // of the first n layers
  double first_, last_;
  std::size_t stages_;
  std::vector<double> best_;
  std::vector<std::vector<std::size_t>> from_;  // by stage and its last layer: its first
};

// Compared in order, less is better: the heaviest rank, then squares over ranks, then squares over stages.
using Weight = std::array<double, 3>;

Weight weight_of(const LayerCosts& costs, const std::vector<int>& split,
                 const std::function<int(int)>& rank_of) {
  std::vector<double> ranks(split.size(), 0);
  Weight weight{};
  auto layer = costs.layers.begin();
  for (std::size_t s = 0; s < split.size(); ++s) {
    const double stage = std::accumulate(layer, layer + split[s], 0.0) + (s == 0 ? costs.first : 0) +
                         (s + 1 == split.size() ? costs.last : 0);
    layer += split[s];
    ranks[static_cast<std::size_t>(rank_of(static_cast<int>(s)))] += stage;
    weight[2] += stage * stage;
  }
  for (const double rank : ranks) {
    weight[0] = std::max(weight[0], rank);
    weight[1] += rank * rank;
  }
  return weight;
}

// Rounding: the same sum in another order differs by less.
bool is_lighter(const Weight& a, const Weight& b) {
  constexpr double kRounding = 1e-12;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::abs(a[i] - b[i]) > kRounding * b[i]) return a[i] < b[i];
  return false;
}

}  // namespace

std::vector<int> balanced_over_ranks(const LayerCosts& costs, std::vector<int> split,
                                     const std::function<int(int)>& rank_of) {
  constexpr int kMaxRounds = 64;
  Weight least = weight_of(costs, split, rank_of);
  for (int round = 0; round < kMaxRounds; ++round) {
    std::vector<int> best = split;
    for (std::size_t from = 0; from < split.size(); ++from) {
      for (std::size_t to = 0; to < split.size() && split[from] > 0; ++to) {
        std::vector<int> moved = split;
        --moved[from];
        ++moved[to];
        const Weight weight = weight_of(costs, moved, rank_of);
        if (!is_lighter(weight, least)) continue;
        least = weight;
        best = std::move(moved);
      }
    }
    if (best == split) break;
    split = std::move(best);
  }
  return split;
}

std::vector<int> filled_split(int layers, int stages) {
  const int share = (layers + stages - 1) / stages;
  std::vector<int> split;
  for (int stage = 0; stage < stages; ++stage, layers -= split.back())
    split.push_back(std::min(share, layers));
  return split;
}

std::vector<int> balanced_split(const LayerCosts& costs, int stages) {
  Split split(costs, stages);
  const double heaviest = split.solve([](double before, double cost) { return std::max(before, cost); });
  const double most = heaviest * (1 + 1e-12);  // sums differ by rounding
  split.solve([&](double before, double cost) { return cost > most ? kNever : before + cost * cost; });
  return split.layers_per_stage();
}

}  // namespace rehearse
