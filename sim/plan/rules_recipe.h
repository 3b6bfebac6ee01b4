// Which rules must the precision of the training state obey?
#pragma once

#include <vector>

#include "plan/plan.h"

namespace rehearse {

// Adds the violations found.
void add_recipe_rules(const Plan& plan, std::vector<Violation>& violations);

}  // namespace rehearse
