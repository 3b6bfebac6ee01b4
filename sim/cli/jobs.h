// How many threads or processes may work side by side?
#pragma once

#include <string>

#include "cli/verb.h"

namespace rehearse {

// --jobs N, 0 until it is given. `what`: of what there are N.
VerbOption jobs_option(int& jobs, const std::string& what);

// As many as were asked for, else one for each core.
int jobs_or_cores(int jobs);

}  // namespace rehearse
