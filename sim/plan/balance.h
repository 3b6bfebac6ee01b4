// Which contiguous split of the layers makes the heaviest stage as light as it can be?
#pragma once

#include <vector>

namespace rehearse {

// Layers of each stage. `layers` are costs in model order; `first` is added to the first stage (embedding)
// and `last` to the last (head). Exact, by dynamic programming over stages and layers in O(stages x
// layers^2); of the splits with the lightest heaviest stage, the one with the least sum of squares. Requires
// stages >= 1.
std::vector<int> balanced_split(const std::vector<double>& layers, double first, double last, int stages);

}  // namespace rehearse
