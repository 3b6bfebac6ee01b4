// Which values do functions of other files return, where configurations in Python begin with them?
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/json_reader.h"

namespace rehearse {

struct PythonLibraryFunction {
  Json value;                                     // "()" names the class of an object
  std::string calls, first;                       // or another function, with `value` as its arguments
  std::map<std::string, std::string> parameters;  // and the field, "trainer.devices", that each sets
  std::set<std::string> free;                     // parameters that change neither time nor memory
  std::string source;                             // program, commit and files
};

// Finds a function by the last steps of its name, "llm.llama3_8b.pretrain_recipe".
std::optional<PythonLibraryFunction> python_library(const std::string& name);

}  // namespace rehearse
