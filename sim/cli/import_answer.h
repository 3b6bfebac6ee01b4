// How does `import` report the options, one by one?
#pragma once

#include <string>

#include "frameworks/imported.h"

namespace rehearse {

// {"kind", "scenario", "options": [{"name", "value", "place", "class", "effect"}], "notes"}
Json import_answer(const std::string& kind, const Json& scenario, const Imported& imported);

// InputError that names each unknown option with its place.
void require_known(const Imported& imported, const std::string& file);

}  // namespace rehearse
