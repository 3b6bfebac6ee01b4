// How are two runs shown side by side in Perfetto? In one trace with both, rank beside rank.
#pragma once

#include <string>

#include "base/json_reader.h"

namespace rehearse {

// Chrome JSON with the events of both: rank r of the first as process 2 r, of the second as 2 r + 1.
// Processes are called "NAME rank r (...)"; flows stay separate. InputError for an invalid event.
Json join_traces(const Json& first, const std::string& first_name, const Json& second,
                 const std::string& second_name);

}  // namespace rehearse
