// What do Python's own functions return?
#pragma once

#include <string>
#include <vector>

#include "frameworks/python_expression.h"

namespace rehearse {

// Discarded where the name is none of them; unknown where the value does not follow from the arguments.
Json python_builtin(const std::string& name, const std::vector<PythonArgument>& arguments);

}  // namespace rehearse
