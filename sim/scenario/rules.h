// Does the plan of a scenario keep the rules, and which of its values would?
#pragma once

#include <vector>

#include "plan/rules/broken_rule.h"
#include "scenario/scenario.h"

namespace rehearse {

// Of plan, GPUs and cluster together; layers that are split by cost count as split.
std::vector<BrokenRule> unmet_rules(const Scenario& scenario);

// InputError with the causes first. Each value that it names was tried in this scenario: what follows from
// other fields follows again.
void require_rules(const Scenario& scenario, const ScenarioSource& source, const Replaced& replaced);

}  // namespace rehearse
