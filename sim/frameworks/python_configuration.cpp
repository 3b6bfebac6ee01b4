#include "frameworks/python_configuration.h"

#include <fmt/core.h>

#include "base/error.h"

namespace rehearse {

namespace {

std::string words_that_name(const std::string& file, const std::vector<std::string>& names) {
  return fmt::format("rehearse import {} {}, or {}", file, names.front(),
                     join({names.begin() + 1, names.end()}).substr(0, 400));
}

void require_known_begin(const Json& found, const std::string& file) {
  const std::string open = found.is_string() && is_open_python(found) ? found.get<std::string>() : "";
  if (!open.empty())
    throw InputError({file, "", "builds a configuration that the file does not decide", "found " + open,
                      fmt::format("rehearse import {} FUNCTION {}=VALUE", file, open.substr(1))});
  if (!found.is_object())
    throw InputError(
        {file, "", "builds no configuration", found.dump().substr(0, 100), "name another function"});
  const std::string made = made_by(found);
  if (is_python_class(made)) return;
  throw InputError({file, "",
                    "begins with a configuration that another file makes, so its values are not known",
                    made.empty() ? "found a name of another module" : fmt::format("found {}()", made),
                    fmt::format("rehearse import {} FUNCTION --source FILE, which defines it", file)});
}

}  // namespace

PythonResult python_configuration(const std::string& text, const std::string& file,
                                  const ImportRequest& request) {
  PythonFile python(text, file, request.shell);
  std::vector<std::string> names;
  for (const std::string& each : python.functions())
    if (!each.starts_with('_')) names.push_back(each);
  if (names.empty())
    throw InputError({file, "", "has no function that builds a configuration", "",
                      "the file that defines it, with others as --source FILE"});
  const bool is_named = !request.shell.arguments.empty();
  if (!is_named && names.size() > 1)
    throw InputError({file, "", "has several functions: one of them must be named",
                      fmt::format("found {} functions", names.size()), words_that_name(file, names)});
  PythonResult found = python.call(is_named ? request.shell.arguments.front() : names.front());
  require_known_begin(found.json, file);
  return found;
}

std::string made_by(const Json& value) {
  return value.is_object() && value.contains(kPythonMadeBy) ? value[kPythonMadeBy].get<std::string>() : "";
}

bool is_open_python(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().starts_with('$');
}

void drop_names_of_calls(Json& value) {
  if (!value.is_structured()) return;
  if (value.is_object()) value.erase(kPythonMadeBy);
  for (Json& each : value) drop_names_of_calls(each);
}

}  // namespace rehearse
