#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "frameworks/python_builtins.h"
#include "frameworks/python_run.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

namespace {

constexpr int kDeepestCall = 16, kMaxCalls = 300;
constexpr const char* kPartial = "Partial";  // a function with values for some of its parameters

// "Class.function" of "module.Class.function".
std::string last_steps_of(const std::string& name, int count) {
  if (name.empty()) return name;
  std::size_t dot = name.size();
  while (count-- > 0 && dot != std::string::npos && dot > 0) dot = name.rfind('.', dot - 1);
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

// The arguments, and those of `fallback` that the arguments do not name.
std::vector<PythonArgument> merged(std::vector<PythonArgument> fallback,
                                   const std::vector<PythonArgument>& arguments) {
  std::erase_if(fallback, [&](const PythonArgument& each) {
    return !each.name.empty() &&
           std::ranges::find(arguments, each.name, &PythonArgument::name) != arguments.end();
  });
  fallback.insert(fallback.end(), arguments.begin(), arguments.end());
  return fallback;
}

// Methods that change no configuration, whatever object has them.
const std::set<std::string>& of_texts_and_logs() {
  static const std::set<std::string> names = {"debug",      "error", "info",  "warning", "endswith",
                                              "format",     "join",  "lower", "rstrip",  "split",
                                              "startswith", "strip", "upper"};
  return names;
}

}  // namespace

void PythonRun::note_unread(int line, const std::string& name) {
  std::string note = fmt::format(
      "line {}: {} is not read, and may change the configuration: pass --source FILE", line, name);
  if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(std::move(note));
}

const PythonFunction* PythonRun::function_named(const std::string& name) const {
  for (const std::string& each : {name, last_steps_of(name, 2), last_steps_of(name, 1)})
    if (const auto own = file_.functions_.find(each); own != file_.functions_.end()) return &own->second;
  return nullptr;
}

bool PythonRun::is_function(const Json& value) const {
  return is_python(value, kPythonName) && !python_text(value).starts_with('.') &&
         function_named(python_text(value)) != nullptr;
}

Json PythonRun::name(const std::string& name) {
  if (const auto given = file_.given_.find(name); given != file_.given_.end())
    return plain_yaml(given->second);
  for (const Frame* frame : {&frames_.back(), &frames_.front()})
    if (const auto found = frame->find(name); found != frame->end()) return found->second;
  return {{kPythonName, name}};
}

Json PythonRun::attribute(const Json& value, const std::string& key) {
  if (is_python(value, kPythonName)) return {{kPythonName, python_text(value) + "." + key}};
  const PythonObject* object = objects_.of(value);
  if (object != nullptr)
    if (const auto found = object->fields.find(key); found != object->fields.end()) return found->second;
  if (const auto given = file_.given_.find(key); given != file_.given_.end())
    return plain_yaml(given->second);
  return object != nullptr ? python_field(value, key) : python_unknown(python_text(value) + "." + key);
}

Json PythonRun::method_of_map(const Json& map, const std::string& key,
                              const std::vector<PythonArgument>& arguments, int line) {
  if (key == "get" && !arguments.empty()) {
    const Json none, fallback = arguments.size() > 1 ? arguments[1].value : none;
    return objects_.at(map, arguments[0].value, &fallback);
  }
  PythonObject& object = *objects_.of(map);
  const bool has_key = !arguments.empty() && arguments[0].value.is_string();
  const std::string name = has_key ? arguments[0].value.get<std::string>() : kPythonSpread;
  const Json open = python_unknown(key + "()");
  if (key == "clear" && !is_open_) object.fields.clear();
  if (key == "clear" || key == "popitem") return object.fields[kPythonSpread] = open;
  if (key == "pop") {
    const Json* const fallback = arguments.size() > 1 ? &arguments[1].value : nullptr;
    const Json taken = objects_.at(map, has_key ? Json(name) : open, fallback);
    if (has_key && !is_open_) object.fields.erase(name);
    if (!has_key || is_open_) object.fields[name] = open;
    return taken;
  }
  if (key == "setdefault") {
    if (!has_key || is_open_) return object.fields[name] = open;
    return object.fields.emplace(name, arguments.size() > 1 ? arguments[1].value : Json()).first->second;
  }
  if (key != "update") return open;
  std::vector<PythonArgument> fields = arguments;
  for (PythonArgument& each : fields)
    if (each.name.empty()) each.name = kPythonSpread;
  const Json made = objects_.make(fields, line);
  const PythonObject changes = *objects_.of(made);
  for (const auto& [field, each] : changes.fields) objects_.of(map)->fields[field] = is_open_ ? open : each;
  return nullptr;
}

// A method that is not known returns its own object, as builders do. A note names it where it takes settings.
Json PythonRun::method(const Json& callee, const std::vector<PythonArgument>& arguments, int line) {
  const std::string key = python_text(callee).substr(1);
  const Json base = python_base(callee);
  const PythonObject* const object = objects_.of(base);
  if (object == nullptr || key.find('.') != std::string::npos) return python_unknown(key + "()");
  const std::string type = last_steps_of(object->made_by(), 1);
  if (const auto own = file_.functions_.find(type + "." + key); own != file_.functions_.end()) {
    std::vector<PythonArgument> all = arguments;
    if (own->second.first == PythonFunction::Bound::to_object) all.insert(all.begin(), {"", base});
    if (own->second.first == PythonFunction::Bound::to_class)
      all.insert(all.begin(), {"", Json{{kPythonName, type}}});
    return invoke(own->second, all);
  }
  if (key == "copy" || key == "deepcopy") return objects_.copy({{"", base}}, line);
  if (type.empty()) return method_of_map(base, key, arguments, line);
  if (key == "get" && !arguments.empty()) return python_unknown("get()");
  if (key == "replace") {  // of a dataclass
    std::vector<PythonArgument> all = arguments;
    all.insert(all.begin(), {"", base});
    return objects_.copy(all, line);
  }
  if (of_texts_and_logs().contains(key)) return python_unknown(key + "()");
  const bool takes_settings =
      std::ranges::any_of(arguments, [](const PythonArgument& each) { return each.name != "load_weights"; });
  if (takes_settings) note_unread(line, "." + key + "()");
  return base;
}

Json PythonRun::call(const Json& callee, const std::vector<PythonArgument>& arguments, int line) {
  if (callee.is_number()) return callee;  // "get_world_size=64", as the user hands it in
  const PythonObject* const object = objects_.of(callee);
  if (object != nullptr && object->made_by() == kPartial && object->fields.contains("0")) {
    std::vector<PythonArgument> fallback;
    for (const auto& [key, value] : object->fields)
      if (key != "0" && key != kPythonMadeBy)
        fallback.push_back({std::isdigit(static_cast<unsigned char>(key.front())) != 0 ? "" : key, value});
    const Json function = object->fields.at("0");
    if (deep_ >= kDeepestCall) return python_unknown("partial()");
    ++deep_;
    const Json found = call(function, merged(std::move(fallback), arguments), line);
    --deep_;
    return found;
  }
  if (!is_python(callee, kPythonName)) return python_unknown(python_text(callee) + "()");
  const std::string name = python_text(callee);
  return name.starts_with('.') ? method(callee, arguments, line) : call_by_name(name, arguments, line);
}

Json PythonRun::call_by_name(const std::string& name, const std::vector<PythonArgument>& arguments,
                             int line) {
  const std::string last = last_steps_of(name, 1);
  if (const PythonFunction* own = function_named(name)) {
    std::vector<PythonArgument> all = arguments;
    if (own->first == PythonFunction::Bound::to_class)
      all.insert(all.begin(), {"", Json{{kPythonName, name.substr(0, name.find_last_of('.'))}}});
    return invoke(*own, all);
  }
  if (name == "dict") return objects_.make(arguments, line);
  if (last == "partial") return objects_.make(arguments, line, kPartial);
  if (name == "replace" || last == "deepcopy" || name == "dataclasses.replace" || name == "copy.copy")
    return objects_.copy(arguments, line);
  if (name == "setattr" && arguments.size() == 3 && arguments[1].value.is_string() &&
      objects_.of(arguments[0].value) != nullptr) {
    const Json found = is_open_ ? python_unknown(fmt::format("if_of_line_{}", line)) : arguments[2].value;
    objects_.set_at(arguments[0].value, arguments[1].value, found, line);
    return nullptr;
  }
  if (name == "getattr" && arguments.size() > 1 && arguments[1].value.is_string())
    return attribute(arguments[0].value, arguments[1].value.get<std::string>());
  if (const Json known = python_builtin(name, arguments); !known.is_discarded()) return known;
  if (const auto known = python_library(name)) return of_library(*known, name, arguments, line);
  return made_of_class(name, arguments, line);
}

// Makes an object, with the defaults of a class that the file defines.
Json PythonRun::made_of_class(const std::string& name, const std::vector<PythonArgument>& arguments,
                              int line) {
  const std::string type = last_steps_of(name, 1);
  const auto known = file_.classes_.find(type);
  if (known == file_.classes_.end() || deep_ >= kDeepestCall) return objects_.make(arguments, line, name);
  std::vector<PythonArgument> named, fallback;
  std::size_t position = 0;
  bool is_open = false;
  for (PythonArgument& each : objects_.spread(arguments)) {
    if (each.name.empty() && position < known->second.fields.size())
      each.name = known->second.fields[position++].first;
    if (each.name.empty() && file_.functions_.contains(type + ".__init__")) continue;
    is_open = is_open || each.name == kPythonSpread;
    named.push_back(std::move(each));
  }
  ++deep_;
  for (const auto& [field, tokens] : known->second.fields) {
    const bool is_made = !tokens.empty() && tokens[0].is_word("field");  // by a function of its own
    if (!is_open && !tokens.empty() && !is_made) fallback.push_back({field, value(tokens)});
  }
  --deep_;
  const Json made = objects_.make(merged(std::move(fallback), named), line, name);
  std::vector<PythonArgument> self = {{"", made}};
  if (const auto after = file_.functions_.find(type + ".__post_init__"); after != file_.functions_.end())
    invoke(after->second, self);
  if (const auto begin = file_.functions_.find(type + ".__init__"); begin != file_.functions_.end()) {
    self.insert(self.end(), arguments.begin(), arguments.end());
    invoke(begin->second, self);
  }
  return made;
}

Json PythonRun::of_library(const PythonLibraryFunction& function, const std::string& name,
                           const std::vector<PythonArgument>& arguments, int line) {
  notes_.push_back(
      fmt::format("line {}: {} is not defined in the file: its value at {} is counted; --source FILE "
                  "gives another",
                  line, name, function.source));
  if (!function.calls.empty()) {
    std::vector<PythonArgument> fallback, given = arguments;
    for (const auto& [key, value] : function.value.items())
      fallback.push_back({key, objects_.made_of(value, line)});
    if (!given.empty() && given[0].name.empty()) given[0].name = function.first;
    return call_by_name(function.calls, merged(std::move(fallback), given), line);
  }
  const Json made = objects_.made_of(function.value, line);
  for (const PythonArgument& each : arguments) {
    const auto parameter = function.parameters.find(each.name);
    if (parameter != function.parameters.end())
      objects_.set_path(made, parameter->second, each.value, line);
    else if (!function.free.contains(each.name))
      notes_.push_back(fmt::format("line {}: {} {} is not followed: its default is counted", line, name,
                                   each.name.empty() ? "by position" : each.name));
  }
  return made;
}

// `top`: the user calls the function. The user's values may also belong to the function's "**kwargs".
PythonRun::Frame PythonRun::frame_of(const PythonFunction& function,
                                     const std::vector<PythonArgument>& arguments, bool top) {
  Frame frame;
  std::size_t position = 0;
  std::vector<PythonArgument> rest;
  Json others = Json::array();
  bool open = false;
  const auto is_parameter = [&](const std::string& each) {
    return std::ranges::find(function.parameters, each) != function.parameters.end();
  };
  for (const PythonArgument& each : objects_.spread(arguments)) {
    if (each.name == kPythonSpread)
      open = true;
    else if (each.name.empty() && position < function.parameters.size())
      frame[function.parameters[position++]] = each.value;
    else if (each.name.empty())
      others.push_back(each.value);
    else if (is_parameter(each.name))
      frame[each.name] = each.value;
    else
      rest.push_back(each);
  }
  for (const auto& [name, given] : file_.given_)
    if (top && !is_parameter(name)) rest.push_back({name, plain_yaml(given)});
  if (open) rest.push_back({kPythonSpread, python_unknown(function.rest)});
  if (!function.rest.empty()) frame[function.rest] = objects_.make(rest, function.line);
  if (!function.others.empty()) frame[function.others] = std::move(others);
  for (const std::string& parameter : function.parameters) {
    if (frame.contains(parameter)) continue;
    const auto fallback = function.defaults.find(parameter);
    const auto given = file_.given_.find(parameter);
    frame[parameter] = given != file_.given_.end()                   ? plain_yaml(given->second)
                       : open || fallback == function.defaults.end() ? python_unknown(parameter)
                                                                     : value(fallback->second);
  }
  return frame;
}

Json PythonRun::invoke(const PythonFunction& function, const std::vector<PythonArgument>& arguments,
                       bool top) {
  if (deep_ >= kDeepestCall || ++calls_ > kMaxCalls) return python_unknown(function.name + "()");
  ++deep_;
  frames_.push_back(frame_of(function, arguments, top));
  returned_ = nullptr;
  done_ = false;
  const int before = std::exchange(open_return_, 0);
  run(function.body, false);
  done_ = false;
  frames_.pop_back();
  --deep_;
  const int line = std::exchange(open_return_, before);
  const Json found = std::exchange(returned_, nullptr);
  return line > 0 ? python_unknown(fmt::format("if_of_line_{}", line)) : found;
}

}  // namespace rehearse
