// How is a profile written so that people can read it and a diff shows rows?
#pragma once

#include <string>

#include "base/json_reader.h"

namespace rehearse {

// JSON text with one row of a table on one line; the same value gives the same bytes.
std::string to_text(const Json& value);

}  // namespace rehearse
