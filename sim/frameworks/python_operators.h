// Which value do the operators of Python return for two values?
#pragma once

#include <string>

#include "frameworks/python_expression.h"

namespace rehearse {

// "+", "//", "**", ...; unknown where the values do not decide it.
Json python_computed(const Json& a, const std::string& op, const Json& b);

// "<", "in", "not in", ...
Json python_compared(const Json& a, const std::string& op, const Json& b);

// Names of other modules are compared by their text: two constants may have one value.
Json python_equal(const Json& a, const Json& b);

Json python_inverted(const Json& value, bool inverts);

}  // namespace rehearse
