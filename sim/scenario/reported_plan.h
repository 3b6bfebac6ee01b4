// What does the plan of a report (`simulate --json`, `plan --json`) say in the words of a scenario?
#pragma once

#include "scenario/flags.h"

namespace rehearse {

// The plan of the scenario, where three keys may stand as reports have them: "order" as an array,
// "bucket_bytes", and "microbatches", which follows from others. InputError where it does not.
Json plan_of(const ScenarioSource& source);

}  // namespace rehearse
