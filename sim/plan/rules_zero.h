// Which rules does the division of state over data-parallel ranks break?
#pragma once

#include <vector>

#include "plan/broken_rule.h"
#include "plan/plan.h"

namespace rehearse {

// Requires degrees of at least 1.
void add_zero_violations(const Plan& plan, const Model& model, std::vector<BrokenRule>& violations);

}  // namespace rehearse
