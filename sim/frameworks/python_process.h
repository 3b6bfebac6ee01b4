// What does Python's own parser find in a file? Nothing of the file runs: settings.py follows its tree.
#pragma once

#include <string>

#include "base/json_reader.h"

namespace rehearse {

// Hands the request to data/settings.py, whose docstring explains request and answer. The first python3 of
// $PATH runs it without a shell, for at most 10 s. InputError about `file` where there is no python3, and
// where the file is not Python or exceeds a limit of time, memory or size.
Json ask_python(const Json& request, const std::string& file);

}  // namespace rehearse
