// What of a plan does a launch line leave unsaid?
#pragma once

#include <string>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"

namespace rehearse {

// A plan of the degrees, the batch and the precision of `plan`, and else as `framework` has it unless it is
// told otherwise: where a launch line says nothing.
Plan untold(const Model& model, const Plan& plan, Framework framework);

// The keys, in a scenario's words, where `plan` is other than what its launch line leads to, as far as they
// decide how long an iteration takes or what memory it needs. Not how evenly experts are asked for, which is
// the data's doing.
std::vector<std::string> unsaid(const Model& model, const Plan& plan, const Plan& said);

}  // namespace rehearse
