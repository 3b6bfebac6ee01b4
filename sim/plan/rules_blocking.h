// What may a plan not ask for whose host waits for each kernel?
#pragma once

#include <vector>

#include "plan/broken_rule.h"
#include "plan/plan.h"

namespace rehearse {

// Adds the violations found.
void add_blocking_rules(const Plan& plan, std::vector<BrokenRule>& violations);

}  // namespace rehearse
