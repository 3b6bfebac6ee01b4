// Which JSON is a scenario? A JSON schema, for editors and for the documentation.
#pragma once

#include "base/json_reader.h"

namespace rehearse {

// JSON Schema, draft 7. Each property has a description, and extensions: "x-flag", "x-group", and "x-default"
// in words.
Json scenario_schema();

// The schema of a report's "plan" by key, for the fields of a plan.
Json reported_plan_schema();

}  // namespace rehearse
