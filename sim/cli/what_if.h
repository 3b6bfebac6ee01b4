// What would the same run be with one thing changed?
#pragma once

#include "scenario/flags.h"
#include "scenario/inputs.h"
#include "scenario/scenario.h"

namespace rehearse {

// For each of a few knobs its legal values, priced by the reference engine: [{label, axis, current, values:
// [{value, step_time_s, tokens_per_s_per_gpu, bubble, peak_bytes, needed_bytes, fits, verdict}]}]. Values
// that break a rule, and runs too long to price at once, are left out; a knob with less than two values is
// too.
Json what_if(const ScenarioSource& source, const Scenario& scenario);

}  // namespace rehearse
