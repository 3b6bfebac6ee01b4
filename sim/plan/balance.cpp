#include "plan/balance.h"

#include <algorithm>
#include <limits>

namespace rehearse {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Best[s][n]: the least of `join` over the costs of the first s stages, which hold the first n layers.
class Split {
 public:
  Split(const std::vector<double>& layers, double first, double last, int stages)
      : sums_(layers.size() + 1, 0), first_(first), last_(last), stages_(static_cast<std::size_t>(stages)) {
    for (std::size_t i = 0; i < layers.size(); ++i) sums_[i + 1] = sums_[i] + layers[i];
  }

  // `join` adds a stage's cost to what the stages before it came to; kNever refuses it.
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

}  // namespace

std::vector<int> balanced_split(const std::vector<double>& layers, double first, double last, int stages) {
  Split split(layers, first, last, stages);
  const double heaviest = split.solve([](double before, double cost) { return std::max(before, cost); });
  const double most = heaviest * (1 + 1e-12);  // sums differ by rounding
  split.solve([&](double before, double cost) { return cost > most ? kNever : before + cost * cost; });
  return split.layers_per_stage();
}

}  // namespace rehearse
