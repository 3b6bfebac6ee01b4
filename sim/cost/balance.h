// Which contiguous splits of the layers share their cost well?
#pragma once

#include <functional>
#include <vector>

namespace rehearse {

// Costs in model order; `first` is added to the first stage (embedding) and `last` to the last (head).
struct LayerCosts {
  std::vector<double> layers;
  double first = 0, last = 0;
};

// Layers of each stage, so that the heaviest stage is as light as it can be. Exact, by dynamic programming
// over stages and layers in O(stages x layers^2); of the splits with the lightest heaviest stage, the one
// with the least sum of squares. Requires stages >= 1.
std::vector<int> balanced_split(const LayerCosts& costs, int stages);
inline std::vector<int> balanced_split(const std::vector<double>& layers, double first, double last,
                                       int stages) {
  return balanced_split(LayerCosts{layers, first, last}, stages);
}

// `split` with layers moved from stage to stage until no move makes the heaviest pipeline rank lighter, or of
// equal ones the sum of squares over ranks, then over stages, smaller. rank_of: of each stage.
std::vector<int> balanced_over_ranks(const LayerCosts& costs, std::vector<int> split,
                                     const std::function<int(int stage)>& rank_of);

// An even share, rounded up, on each stage until no layers are left.
std::vector<int> filled_split(int layers, int stages);

}  // namespace rehearse
