// Which activations does MaxText's remat_policy keep, and what is recomputed in the backward pass?
#pragma once

#include "frameworks/plan_yaml.h"

namespace rehearse {

// Sets recompute and its modules. A violation for a policy that MaxText does not have.
void add_remat_policy(PlanYaml& from, bool has_experts, Json& plan);

}  // namespace rehearse
