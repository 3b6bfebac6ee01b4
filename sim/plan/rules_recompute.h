// Which rules must recompute obey?
#pragma once

#include <vector>

#include "plan/broken_rule.h"
#include "plan/plan.h"

namespace rehearse {

// Adds the violations found; the degrees of the plan are positive.
void add_recompute_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& violations);

}  // namespace rehearse
