// Is a JSON file of the expected kind?
#pragma once

#include <string>

#include "base/json_reader.h"

namespace rehearse {

enum class JsonKind { scenario, model, cluster, profile, report, trace, plans };

// InputError where the file is of another kind, with the command that reads it. A file that its keys do not
// identify passes.
void require_kind(const Json& json, const std::string& file, JsonKind wanted);

}  // namespace rehearse
