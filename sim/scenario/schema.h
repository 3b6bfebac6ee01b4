// Which JSON is a scenario? As a JSON schema, for editors and for the pages.
#pragma once

#include "base/json_reader.h"

namespace rehearse {

// JSON Schema, draft 7. Each property has a description, and of our own: "x-flag", "x-group", and "x-default"
// in words.
Json scenario_schema();

// Of what a report's "plan" holds for the fields of a plan, by key.
Json reported_plan_schema();

}  // namespace rehearse
