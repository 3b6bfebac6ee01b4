// Which parameters are gathered and dropped together, when every rank holds only its shard?
#pragma once

#include <vector>

#include "plan/weights.h"
#include "plan/work.h"

namespace rehearse {

// Parameters on one rank.
struct Unit {
  double dense = 0;
  double experts = 0;  // held by Plan::edp() ranks in common
  double frozen = 0;   // gathered like others, but not reduced
  Weights weights;
  double trained() const { return dense + experts; }
  double total() const { return trained() + frozen; }
};

// The units of a stage in model order, one for each layer (Zhao et al. 2023, section 3.2.1). The embedding is
// in the first unit, the head in the last.
std::vector<Unit> units(const Work& work, int stage);

// By stage and unit.
std::vector<std::vector<Weights>> unit_weights(const Work& work);

}  // namespace rehearse
