// Under which conditions is the plan of a scenario run: placement, slow parts, jitter, repeats, memory that
// stays free?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "memory/verdict.h"
#include "run/conditions.h"

namespace rehearse {

// Reads "placement", "pxn", "slow", "jitter", "message_jitter", "iterations" and "seed". InputError for a
// value that breaks a rule.
Conditions read_conditions(const JsonReader& scenario);

// The scenario's "headroom": a percentage of the GPU's memory or bytes with a unit; 5 % where it is left out.
// InputError for what is neither, or 100 % and more.
Headroom read_headroom(const JsonReader& scenario);

// Adds the texts of "notes", which every report of the scenario repeats as warnings.
void read_notes(const JsonReader& scenario, std::vector<std::string>& notes);

}  // namespace rehearse
