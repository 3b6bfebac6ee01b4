#include "frameworks/python_library.h"

#include <string_view>

namespace rehearse {

namespace tables {
extern const std::string_view kPythonLibraryJson;  // embedded
}

namespace {

const Json& library() {
  static const Json found = Json::parse(tables::kPythonLibraryJson);
  return found;
}

std::string last_steps(const std::string& name, int count) {
  std::size_t dot = name.size();
  for (; count > 0 && dot != std::string::npos; --count)
    dot = dot == 0 ? std::string::npos : name.rfind('.', dot - 1);
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

}  // namespace

std::optional<PythonLibraryFunction> python_library(const std::string& name) {
  for (const Json& program : library().at("programs"))
    for (const int steps : {1, 2}) {
      const auto found = program.at("functions").find(last_steps(name, steps));
      if (found == program.at("functions").end()) continue;
      PythonLibraryFunction function;
      function.value = program.at("base");
      function.value.merge_patch(*found);
      program.at("parameters").get_to(function.parameters);
      program.at("free").get_to(function.free);
      program.at("source").get_to(function.source);
      return function;
    }
  return std::nullopt;
}

}  // namespace rehearse
