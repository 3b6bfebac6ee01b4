// Which configuration does the function build that the user names?
#pragma once

#include <string>

#include "frameworks/python_values.h"

namespace rehearse {

// Calls the function that the first argument names, or the only one of the file. InputError where it begins
// with a function that is not read, because most values then are not known.
PythonResult python_configuration(const std::string& text, const std::string& file,
                                  const ImportRequest& request);

// The call that made the object: "Trainer.Config"; "" of other values.
std::string made_by(const Json& value);

// A value that the file does not decide.
bool is_open_python(const Json& value);

// Removes the names of the calls.
void drop_names_of_calls(Json& value);

}  // namespace rehearse
