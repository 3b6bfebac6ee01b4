#include "search/order/move_layers.h"

#include <algorithm>

#include "search/order/lower_bound.h"

namespace rehearse {

namespace {

class Moves {
 public:
  Moves(const LayerCosts& costs, const OrderProblem& like) : costs_(costs), problem_(like) {
    double forward = 0, backward = 0, input = 0, weight = 0;
    for (StageCosts& stage : problem_.stages) {
      forward += static_cast<double>(stage.forward);
      backward += static_cast<double>(stage.backward);
      input += static_cast<double>(stage.input);
      weight += static_cast<double>(stage.weight);
      stage.saved = stage.kept = 0;  // memory is handled by the search
    }
    const double all = forward + input + weight;
    forward_ = forward / all;
    backward_ = backward / all;
    input_ = input / all;
    weight_ = weight / all;
  }

  // Lower bounds by rank.
  std::vector<Ticks> bounds(const std::vector<int>& split) {
    std::size_t layer = 0;
    for (std::size_t s = 0; s < split.size(); ++s) {
      double seconds = (s == 0 ? costs_.first : 0) + (s + 1 == split.size() ? costs_.last : 0);
      for (int i = 0; i < split[s]; ++i) seconds += costs_.layers[layer++];
      StageCosts& stage = problem_.stages[s];
      stage.forward = ticks_of(seconds * forward_);
      stage.backward = ticks_of(seconds * backward_);
      stage.input = ticks_of(seconds * input_);
      stage.weight = ticks_of(seconds * weight_);
    }
    return lower_bounds(problem_);
  }

  int rank_of(std::size_t stage) const { return problem_.rank_of[stage]; }

 private:
  const LayerCosts& costs_;
  OrderProblem problem_;
  double forward_ = 0, backward_ = 0, input_ = 0, weight_ = 0;
};

}  // namespace

std::vector<int> moved_layers(const LayerCosts& costs, const OrderProblem& like, std::vector<int> split) {
  constexpr int kMaxTries = 2000;
  Moves moves(costs, like);
  std::vector<Ticks> now = moves.bounds(split);
  const auto descending = [](std::vector<Ticks> bounds) {
    std::ranges::sort(bounds, std::greater());
    return bounds;
  };
  int tries = 0;
  for (bool moved = true; moved && tries < kMaxTries;) {
    moved = false;
    const auto heaviest = static_cast<int>(std::ranges::max_element(now) - now.begin());
    std::vector<int> best;
    std::vector<Ticks> least = descending(now);
    for (std::size_t from = 0; from < split.size(); ++from) {
      if (moves.rank_of(from) != heaviest || split[from] == 0) continue;
      for (std::size_t to = 0; to < split.size() && tries < kMaxTries; ++to) {
        if (moves.rank_of(to) == heaviest) continue;
        ++tries;
        std::vector<int> tried = split;
        --tried[from];
        ++tried[to];
        std::vector<Ticks> bounds = descending(moves.bounds(tried));
        if (bounds >= least) continue;
        least = std::move(bounds);
        best = std::move(tried);
      }
    }
    if (best.empty()) break;
    split = std::move(best);
    now = moves.bounds(split);
    moved = true;
  }
  return split;
}

}  // namespace rehearse
