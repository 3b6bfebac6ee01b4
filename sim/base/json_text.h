// How is JSON parsed from a text that is not a file of its own?
#pragma once

#include "base/json_reader.h"

namespace rehearse {

// As read_json_file() reads it; `path` is named in errors.
Json parse_json(const std::string& text, const std::string& path, const JsonLimits& limits = {});

}  // namespace rehearse
