// How does the same run change when one value changes?
#pragma once

#include "scenario/flags.h"
#include "scenario/inputs.h"
#include "scenario/scenario.h"

namespace rehearse {

// The legal values of a few knobs, priced by the reference engine: [{label, axis, current, values: [{value,
// step_time_s, tokens_per_s_per_gpu, bubble, peak_bytes, needed_bytes, fits, verdict}]}]. Values that break a
// rule, and runs too long to price at once, are omitted. A knob with less than two values is omitted too.
Json what_if(const ScenarioSource& source, const Scenario& scenario);

}  // namespace rehearse
