// Which rules must the precision of the training state obey?
#pragma once

#include <vector>

#include "plan/broken_rule.h"
#include "plan/plan.h"

namespace rehearse {

// Adds the violations found.
void add_recipe_rules(const Plan& plan, std::vector<BrokenRule>& violations);

}  // namespace rehearse
