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

// A preset calls another preset, or a function. Its arguments are those of the whole chain.
PythonLibraryFunction of_preset(const Json& program, const std::string& name) {
  const Json& presets = program.at("presets");
  PythonLibraryFunction function;
  function.value = presets.at(name).at("with");
  presets.at(name).at("of").get_to(function.calls);
  while (presets.contains(function.calls)) {
    Json value = presets.at(function.calls).at("with");
    value.update(function.value);
    function.value = std::move(value);
    function.calls = presets.at(function.calls).at("of").get<std::string>();
  }
  program.at("first").get_to(function.first);
  program.at("source").get_to(function.source);
  return function;
}

}  // namespace

std::optional<PythonLibraryFunction> python_library(const std::string& name) {
  for (const Json& program : library().at("programs"))
    for (const int steps : {1, 2}) {
      if (program.contains("presets") && program.at("presets").contains(last_steps(name, steps)))
        return of_preset(program, last_steps(name, steps));
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
