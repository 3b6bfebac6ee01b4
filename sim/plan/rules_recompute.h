// Which rules must recompute obey?
#pragma once

#include <vector>

#include "plan/plan.h"

namespace rehearse {

// Adds the violations found; the degrees of the plan are positive.
void add_recompute_rules(const Plan& plan, const Model& model, std::vector<Violation>& violations);

}  // namespace rehearse
