// How does `import` report the options, one by one?
#pragma once

#include <string>

#include "frameworks/step_values.h"

namespace rehearse {

// {"kind", "scenario", "options": [{"name", "value", "place", "class", "effect"}], "notes"}
// "coverage": {"read", "assumed", "of"} and "omitted_effects" say how far the scenario can be trusted.
Json import_answer(const std::string& kind, const Json& scenario, const Imported& imported,
                   const Coverage& coverage);

// InputError that names each unknown option with its place.
void require_known(const Imported& imported, const std::string& file);

}  // namespace rehearse
