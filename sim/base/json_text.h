// What does a text of JSON hold that did not come from a file of its own?
#pragma once

#include "base/json_reader.h"

namespace rehearse {

// As read_json_file() reads it; `path` is named in errors.
Json parse_json(const std::string& text, const std::string& path, const JsonLimits& limits = {});

}  // namespace rehearse
