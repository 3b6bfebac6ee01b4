// Does the plan of a scenario obey the rules, and which values would?
#pragma once

#include <vector>

#include "plan/rules/broken_rule.h"
#include "scenario/scenario.h"

namespace rehearse {

// Broken rules of plan, GPUs and cluster together; layers that are split by cost count as split.
std::vector<BrokenRule> unmet_rules(const Scenario& scenario);

// InputError with the causes first. Each suggested value was tried in this scenario, with dependent fields
// derived again.
void require_rules(const Scenario& scenario, const ScenarioSource& source, const Replaced& replaced);

}  // namespace rehearse
