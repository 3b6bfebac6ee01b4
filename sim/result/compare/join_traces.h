// How do two runs stand side by side in Perfetto? One trace that holds both, rank beside rank.
#pragma once

#include <string>

#include "base/json_reader.h"

namespace rehearse {

// Chrome JSON with the events of both: rank r of the first as process 2 r, of the second as 2 r + 1, the
// processes called "NAME rank r (...)"; flows stay apart. InputError when an event is none.
Json join_traces(const Json& first, const std::string& first_name, const Json& second,
                 const std::string& second_name);

}  // namespace rehearse
