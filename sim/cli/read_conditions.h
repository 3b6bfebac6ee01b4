// What is not ideal in a scenario: placement, slow parts, jitter, and how often it is run?
#pragma once

#include "base/json_reader.h"
#include "run/conditions.h"

namespace rehearse {

// Reads "placement", "pxn", "slow", "jitter", "message_jitter", "iterations" and "seed". InputError for a
// value that breaks a rule.
Conditions read_conditions(const JsonReader& scenario);

}  // namespace rehearse
