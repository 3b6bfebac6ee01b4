// How is the plan of a report (`simulate --json`, `plan --json`) read as that of a scenario?
#pragma once

#include "scenario/flags.h"

namespace rehearse {

// The plan of the scenario, where three keys may have the form of reports: "order" as an array,
// "bucket_bytes", and "microbatches", which follows from other keys. InputError where it contradicts them.
Json plan_of(const ScenarioSource& source);

}  // namespace rehearse
