// Small searches: an experiment and every legal plan of a small space.
#pragma once

#include <cstdint>
#include <vector>

#include "run/iteration.h"

namespace rehearse {

struct SearchCase {
  Experiment experiment;
  std::vector<Plan> plans;
};

// A model of a few layers on 8 GPUs, drawn by `seed`; GPUs have memory for some of the plans.
SearchCase search_case(std::uint32_t seed);

}  // namespace rehearse
