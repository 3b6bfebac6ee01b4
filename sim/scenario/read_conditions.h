// Under which conditions does the plan of a scenario run: placement, slow parts, jitter, repeats, free
// memory?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "base/omitted_effect.h"
#include "memory/verdict.h"
#include "run/conditions.h"

namespace rehearse {

// Reads "placement", "pxn", "slow", "jitter", "message_jitter", "iterations" and "seed". InputError for a
// value that breaks a rule.
Conditions read_conditions(const JsonReader& scenario);

// The scenario's "headroom": a percentage of the GPU's memory or bytes with a unit; 5 % where it is absent.
// InputError for other values, and for 100 % and more.
Headroom read_headroom(const JsonReader& scenario);

// Adds the texts of "notes"; every report of the scenario repeats them as warnings.
void read_notes(const JsonReader& scenario, std::vector<std::string>& notes);

// The scenario's "omitted_effects": options of a launch file that are not counted and can decide the answer.
std::vector<OmittedEffect> read_omitted_effects(const JsonReader& scenario);

}  // namespace rehearse
