// How is a measurement written into a profile?
#pragma once

#include "base/json_reader.h"
#include "cost/measurement.h"

namespace rehearse {

// InputError for a key that is missing, unknown or of the wrong type.
Measurement read_measurement(const JsonReader& reader);
Json to_json(const Measurement& measurement);

}  // namespace rehearse
