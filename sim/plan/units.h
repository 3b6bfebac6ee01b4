// Which parameters are gathered and dropped together when every rank holds but its shard?
#pragma once

#include <vector>

#include "plan/work.h"

namespace rehearse {

// Parameters of each unit of a stage on one rank, in model order: one unit a layer (Zhao et al. 2023, section
// 3.2.1), the embedding with the first of them, the head with the last.
std::vector<double> unit_parameters(const Work& work, int stage);

}  // namespace rehearse
