// Which values do Python's own functions return?
#pragma once

#include <string>
#include <vector>

#include "frameworks/python_expression.h"

namespace rehearse {

// A discarded value where `name` is no such function; an unknown value where the arguments do not decide it.
Json python_builtin(const std::string& name, const std::vector<PythonArgument>& arguments);

// "text.name(arguments)"; unknown where the arguments do not decide it.
Json python_text_method(const std::string& text, const std::string& name,
                        const std::vector<PythonArgument>& arguments);

}  // namespace rehearse
