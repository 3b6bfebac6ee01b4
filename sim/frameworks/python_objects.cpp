#include "frameworks/python_objects.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

namespace {

constexpr int kMaxWritten = 10'000;
constexpr int kDeepestObject = 12;
constexpr std::size_t kMaxObjects = 20'000;
constexpr std::size_t kMaxSpread = 1024;  // values of one list

// Key of a map: words are their own keys, and others stand as they print, so that (4, 1) is found by (4, 1).
std::string key_of(const Json& key) {
  return key.is_string() ? key.get<std::string>() : key.dump();
}

// "NAME", of another module. A field that nothing has set begins with a dot.
bool is_field(const Json& value) {
  return is_python(value, kPythonName) && python_text(value).starts_with('.');
}

}  // namespace

Json python_field(const Json& object, const std::string& key) {
  return {{kPythonName, fmt::format(".{}/{}", object[kPythonReference].get<std::size_t>(), key)}};
}

Json python_base(const Json& field) {
  const std::string text = field[kPythonName].get<std::string>();
  const std::size_t slash = text.find('/');
  if (!text.starts_with('.') || slash == std::string::npos) return nullptr;
  return {{kPythonReference, std::stoull(text.substr(1, slash - 1))}};
}

std::string PythonObject::made_by() const {
  const auto found = fields.find(kPythonMadeBy);
  return found != fields.end() && found->second.is_string() ? found->second.get<std::string>() : "";
}

bool is_python_class(const std::string& name) {
  const std::string last = name.substr(name.find_last_of('.') + 1);
  const std::size_t letter = last.find_first_not_of('_');
  return letter != std::string::npos && std::isupper(static_cast<unsigned char>(last[letter])) != 0;
}

bool PythonObject::is_of_function() const {
  const std::string name = made_by();
  return !name.empty() && !is_python_class(name);
}

Json PythonObjects::make(const std::vector<PythonArgument>& fields, int line, const std::string& made_by) {
  if (objects_.size() >= kMaxObjects)
    throw InputError({file_, fmt::format("line {}", line),
                      fmt::format("a configuration has at most {} objects", kMaxObjects), "", ""});
  PythonObject object;
  if (!made_by.empty()) object.fields[kPythonMadeBy] = made_by;
  int position = 0;
  const auto set = [&](const std::string& key, const Json& value) {
    object.fields[key] = value;
    object.lines[key] = line;
  };
  for (const PythonArgument& each : spread(fields))
    if (each.name == kPythonSpread)
      set(kPythonSpread, python_unknown(python_text(each.value)));
    else
      set(each.name.empty() ? std::to_string(position++) : each.name, each.value);
  objects_.push_back(std::move(object));
  return {{kPythonReference, objects_.size() - 1}};
}

Json PythonObjects::made_of(const Json& tree, int line) {
  if (!tree.is_object() || is_python(tree, kPythonName)) return tree;
  std::vector<PythonArgument> fields;
  std::string made_by;
  for (const auto& [key, value] : tree.items())
    if (key == kPythonMadeBy)
      made_by = value.get<std::string>();
    else
      fields.push_back({key, made_of(value, line)});
  return make(fields, line, made_by);
}

Json PythonObjects::copy(const std::vector<PythonArgument>& arguments, int line) {
  PythonObject* const from = arguments.empty() ? nullptr : of(arguments[0].value);
  if (from == nullptr) return python_unknown("copy");
  const PythonObject fields = *from;
  const Json made = make({arguments.begin() + 1, arguments.end()}, line);
  PythonObject& object = *of(made);
  object.fields.insert(fields.fields.begin(), fields.fields.end());
  return made;
}

void PythonObjects::set_path(const Json& object, const std::string& path, const Json& value, int line) {
  PythonObject* const at = of(object);
  if (at == nullptr) return;
  const std::size_t dot = path.find('.');
  if (dot != std::string::npos)
    return set_path(Json(at->fields[path.substr(0, dot)]), path.substr(dot + 1), value, line);
  at->fields[path] = value;
  at->lines[path] = line;
}

PythonObject* PythonObjects::of(const Json& value) {
  return is_python(value, kPythonReference) ? &objects_[value[kPythonReference].get<std::size_t>()] : nullptr;
}

Json PythonObjects::at(const Json& value, const Json& key, const Json* fallback) {
  const Json open = python_unknown(python_text(value) + "[]");
  if (value.is_array()) {
    if (!key.is_number_integer()) return open;
    std::int64_t index = key.get<std::int64_t>();
    if (index < 0) index += std::ssize(value);
    return index >= 0 && index < std::ssize(value) ? Json(value[static_cast<std::size_t>(index)]) : open;
  }
  const PythonObject* map = of(value);
  const bool is_known_key =
      !is_python(key, kPythonUnknown) && !is_python(key, kPythonReference) && !is_field(key);
  if (map == nullptr || map->is_of_function() || !is_known_key) return open;
  const auto found = map->fields.find(key_of(key));
  if (found != map->fields.end()) return found->second;
  return fallback != nullptr && !map->fields.contains(kPythonSpread) ? *fallback : open;
}

void PythonObjects::set_at(const Json& map, const Json& key, Json value, int line) {
  PythonObject* const object = of(map);
  if (object == nullptr) return;
  const bool is_open = is_python(key, kPythonUnknown) || is_python(key, kPythonReference) || is_field(key);
  const std::string name = is_open ? kPythonSpread : key_of(key);
  object->fields[name] = is_open ? python_unknown(python_text(key)) : std::move(value);
  object->lines[name] = line;
}

std::vector<PythonArgument> PythonObjects::spread(const std::vector<PythonArgument>& arguments) {
  std::vector<PythonArgument> all;
  for (const PythonArgument& each : arguments) {
    const PythonObject* map = each.name == kPythonSpread ? of(each.value) : nullptr;
    if (each.name == kPythonSpread && each.value.is_array() && each.value.size() + all.size() <= kMaxSpread) {
      for (const Json& value : each.value) all.push_back({"", value});
    } else if (map != nullptr && !map->is_of_function()) {
      for (const auto& [name, value] : map->fields)
        if (name != kPythonMadeBy) all.push_back({name, value});
    } else {
      all.push_back(each);
    }
  }
  return all;
}

Json PythonObjects::list(const std::vector<PythonArgument>& values) {
  Json all = Json::array();
  for (const PythonArgument& each : spread(values))
    all.push_back(each.name == kPythonSpread ? python_unknown("*" + python_text(each.value)) : each.value);
  return all;
}

int PythonObjects::truth(const Json& value) {
  const PythonObject* object = of(value);
  if (object == nullptr) return python_truth(value);
  if (object->is_of_function() || object->fields.contains(kPythonSpread)) return -1;
  return object->made_by().empty() && object->fields.empty() ? 0 : 1;
}

int PythonObjects::is_none(const Json& value) {
  if (value.is_null()) return 1;
  if (const PythonObject* object = of(value)) return object->is_of_function() ? -1 : 0;
  return is_python(value, kPythonUnknown) || is_python(value, kPythonName) ? -1 : 0;
}

Json PythonObjects::written_out(const Json& value, std::map<std::string, int>& lines) {
  return written_out(value, "", 0, lines);
}

Json PythonObjects::written_out(const Json& value, const std::string& pointer, int depth,
                                std::map<std::string, int>& lines) {
  if (depth > kDeepestObject || ++written_ > kMaxWritten) return "$deep";
  if (is_python(value, kPythonUnknown)) return "$" + python_text(value);
  if (is_field(value)) return "$" + python_text(value).substr(1);
  if (is_python(value, kPythonName)) {  // a constant of another module, by its capitals
    const std::string name = python_text(value);
    const bool is_constant = name.find_first_of("abcdefghijklmnopqrstuvwxyz.") == std::string::npos;
    return is_constant ? "$" + name : name;
  }
  if (value.is_array()) {
    Json all = Json::array();
    for (const Json& each : value) all.push_back(written_out(each, "", depth + 1, lines));
    return all;
  }
  const PythonObject* object = of(value);
  if (object == nullptr) return value;
  const PythonObject& fields = *object;
  const bool is_value = depth > 1 && fields.is_of_function();  // a number or name that a function returns
  if (is_value) return "$" + fields.made_by() + "()";
  Json all = Json::object();
  for (const auto& [key, each] : fields.fields) {
    const std::string below = pointer + "/" + pointer_step(key);
    all[key] = written_out(each, below, depth + 1, lines);
    if (const auto line = fields.lines.find(key); line != fields.lines.end() && depth < kDeepestObject)
      lines[below] = line->second;
  }
  return all;
}

}  // namespace rehearse
