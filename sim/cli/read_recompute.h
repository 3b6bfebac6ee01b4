// What is computed again in the backward pass, and what does training keep for each parameter?
#pragma once

#include "base/json_reader.h"
#include "plan/plan.h"

namespace rehearse {

// Sets the plan's recompute fields and its recipe from "recompute", "recompute_method",
// "recompute_num_layers", "recompute_modules" (an array, or text with commas) and "recipe"
// (where absent, what the plan has stays). InputError names what has the wrong form; the rules are the
// plan's.
void read_recompute(const JsonReader& json, Plan& plan);

}  // namespace rehearse
