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

// Layers of each stage, chosen so that the heaviest stage is as light as possible. Among equal splits, the
// one with the least sum of squares. Exact, by dynamic programming over stages and layers in O(stages x
// layers^2). Requires stages >= 1.
std::vector<int> balanced_split(const LayerCosts& costs, int stages);
inline std::vector<int> balanced_split(const std::vector<double>& layers, double first, double last,
                                       int stages) {
  return balanced_split(LayerCosts{layers, first, last}, stages);
}

// `split` after layers have moved between stages until no move improves it. A move improves it if the
// heaviest pipeline rank becomes lighter. Between equal ones the sum of squares over ranks decides, then over
// stages. rank_of: the pipeline rank of each stage.
std::vector<int> balanced_over_ranks(const LayerCosts& costs, std::vector<int> split,
                                     const std::function<int(int stage)>& rank_of);

// Each stage gets an even share, rounded up, until no layers are left.
std::vector<int> filled_split(int layers, int stages);

}  // namespace rehearse
