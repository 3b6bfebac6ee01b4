// The rules of one part of a plan: each adds what the plan breaks. broken_rules() calls them all.
#pragma once

#include <vector>

#include "plan/broken_rule.h"
#include "plan/plan.h"

namespace rehearse {

// Schedule against model chunks, microbatches and their groups. Requires degrees and batch of at least 1.
void add_pipeline_violations(const Plan& plan, std::vector<BrokenRule>& violations);

}  // namespace rehearse
