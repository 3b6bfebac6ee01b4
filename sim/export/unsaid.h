// Which keys of a plan can a launch line not express?
#pragma once

#include <string>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"

namespace rehearse {

// A plan with the degrees, batch and precision of `plan`, and `framework`'s defaults for everything else. It
// is the meaning of an empty launch line.
Plan untold(const Model& model, const Plan& plan, Framework framework);

// The keys, in a scenario's words, where `plan` differs from the plan of its launch line `said`. Only keys
// that affect iteration time or memory count. Expert balance does not, as it depends on the data.
std::vector<std::string> unsaid(const Model& model, const Plan& plan, const Plan& said);

}  // namespace rehearse
