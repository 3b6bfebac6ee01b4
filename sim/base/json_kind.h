// Is a JSON file of the kind that is wanted in its place?
#pragma once

#include <string>

#include "base/json_reader.h"

namespace rehearse {

enum class JsonKind { scenario, model, cluster, profile, report, trace, plans };

// InputError where the file is of another kind, with what reads it. What cannot be told from its keys passes.
void require_kind(const Json& json, const std::string& file, JsonKind wanted);

}  // namespace rehearse
