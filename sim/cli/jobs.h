// How many threads or processes may run concurrently?
#pragma once

#include <string>

#include "cli/verb.h"

namespace rehearse {

// --jobs N, 0 when not given. `what` describes the N jobs.
VerbOption jobs_option(int& jobs, const std::string& what);

// The requested number, else one for each core.
int jobs_or_cores(int jobs);

}  // namespace rehearse
