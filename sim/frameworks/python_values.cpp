#include "frameworks/python_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "frameworks/python_builtins.h"
#include "frameworks/python_expression.h"
#include "frameworks/python_library.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

namespace {

constexpr int kMaxStatements = 20'000;
constexpr int kDeepestCall = 16, kMaxCalls = 300;
constexpr int kDeepestBlock = 300;
constexpr std::size_t kLongestList = 4096;

}  // namespace

// One call of one function, with what it makes.
class PythonRun {
 public:
  explicit PythonRun(const PythonFile& file) : file_(file), objects_(file.file_) {
    frames_.emplace_back();
    run(file.globals_, false);
  }

  PythonResult result(const std::string& name) {
    PythonResult found;
    found.json = objects_.written_out(invoke(file_.functions_.at(name), {}, true), found.lines);
    found.notes = std::move(notes_);
    return found;
  }

 private:
  using Frame = std::map<std::string, Json>;

  PythonObject* object_of(const Json& value) { return objects_.of(value); }

  void note_unread(int line, const std::string& name) {
    std::string note = fmt::format(
        "line {}: {} is not read, and may change the configuration: pass --source FILE", line, name);
    if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(std::move(note));
  }

  Json name(const std::string& name) {
    if (const auto given = file_.given_.find(name); given != file_.given_.end())
      return plain_yaml(given->second);
    for (const Frame* frame : {&frames_.back(), &frames_.front()})
      if (const auto found = frame->find(name); found != frame->end()) return found->second;
    return {{kPythonName, name}};
  }

  Json attribute(const Json& value, const std::string& key) {
    if (is_python(value, kPythonName)) return {{kPythonName, python_text(value) + "." + key}};
    if (const PythonObject* object = object_of(value)) {
      const auto found = object->fields.find(key);
      if (found != object->fields.end()) return found->second;
      if (const auto given = file_.given_.find(key); given != file_.given_.end())
        return plain_yaml(given->second);
      return python_field(value, key);
    }
    return python_unknown(python_text(value) + "." + key);
  }

  // A method that is not known returns its own object, as builders do. Of what it is given, a note tells.
  Json method(const Json& callee, const std::vector<PythonArgument>& arguments, int line) {
    const std::string key = python_text(callee).substr(1);
    const Json base = python_base(callee);
    PythonObject* const object = object_of(base);
    if (object == nullptr || key.find('.') != std::string::npos) return python_unknown(key + "()");
    const bool is_map = object->made_by().empty();
    if (key == "get" && !arguments.empty()) {
      const Json none, fallback = arguments.size() > 1 ? arguments[1].value : none;
      return is_map ? objects_.at(base, arguments[0].value, &fallback) : python_unknown("get()");
    }
    if (key == "copy" || key == "deepcopy") return objects_.copy({{"", base}}, line);
    if (is_map && key == "update") {
      std::vector<PythonArgument> fields = arguments;
      for (PythonArgument& each : fields)
        if (each.name.empty()) each.name = kPythonSpread;
      const Json made = objects_.make(fields, line);
      const PythonObject changes = *object_of(made);
      for (const auto& [name, each] : changes.fields) object_of(base)->fields[name] = each;
      return nullptr;
    }
    if (is_map) return python_unknown(key + "()");
    const bool takes_settings = std::ranges::any_of(
        arguments, [](const PythonArgument& each) { return each.name != "load_weights"; });
    if (takes_settings) note_unread(line, "." + key + "()");
    return base;
  }

  Json call(const Json& callee, const std::vector<PythonArgument>& arguments, int line) {
    if (callee.is_number()) return callee;  // "get_world_size=64", as the user hands it in
    if (!is_python(callee, kPythonName)) return python_unknown(python_text(callee) + "()");
    const std::string name = python_text(callee);
    if (name.starts_with('.')) return method(callee, arguments, line);
    const std::string last = name.substr(name.find_last_of('.') + 1);
    for (const std::string& each : {name, last})
      if (const auto own = file_.functions_.find(each); own != file_.functions_.end())
        return invoke(own->second, arguments);
    if (name == "dict") return objects_.make(arguments, line);
    if (name == "replace" || last == "deepcopy" || name == "dataclasses.replace" || name == "copy.copy")
      return objects_.copy(arguments, line);
    if (name == "getattr" && arguments.size() > 1 && arguments[1].value.is_string())
      return attribute(arguments[0].value, arguments[1].value.get<std::string>());
    if (const Json known = python_builtin(name, arguments); !known.is_discarded()) return known;
    if (const auto known = python_library(name)) return of_library(*known, name, arguments, line);
    return objects_.make(arguments, line, name);
  }

  Json of_library(const PythonLibraryFunction& function, const std::string& name,
                  const std::vector<PythonArgument>& arguments, int line) {
    notes_.push_back(
        fmt::format("line {}: {} is not defined in the file: what it returns at {} is counted; --source FILE "
                    "gives another",
                    line, name, function.source));
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

  // `top`: by the user, whose values may also be of the function's "**kwargs".
  Json invoke(const PythonFunction& function, const std::vector<PythonArgument>& arguments,
              bool top = false) {
    if (deep_ >= kDeepestCall || ++calls_ > kMaxCalls) return python_unknown(function.name + "()");
    ++deep_;
    Frame frame;
    bool open = false;
    std::size_t position = 0;
    std::vector<PythonArgument> rest;
    Json others = Json::array();
    const auto is_parameter = [&](const std::string& each) {
      return std::ranges::find(function.parameters, each) != function.parameters.end();
    };
    for (const PythonArgument& each : objects_.spread(arguments, open)) {
      if (each.name.empty() && position < function.parameters.size())
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
    frames_.push_back(std::move(frame));
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

  PythonScope scope() {
    return {[this](const std::string& each) { return name(each); },
            [this](const Json& value, const std::string& key) { return attribute(value, key); },
            [this](const Json& callee, const std::vector<PythonArgument>& all, int line) {
              return call(callee, all, line);
            },
            [this](const std::vector<PythonArgument>& all, int line) { return objects_.make(all, line); },
            [this](const Json& value, const Json& key) { return objects_.at(value, key); },
            [this](const Json& value) { return objects_.truth(value); },
            [this](const Json& value) { return objects_.is_none(value); }};
  }

  Json value(const std::vector<PythonToken>& tokens, std::size_t at = 0) {
    Json first = python_value(tokens, at, scope());
    if (at >= tokens.size() || !tokens[at].is(",")) return first;
    Json all = Json::array({std::move(first)});
    while (at < tokens.size() && tokens[at].is(",")) {
      if (++at < tokens.size()) all.push_back(python_value(tokens, at, scope()));
    }
    return all;
  }

  // `open`: whether the block runs is not known; then what it sets is not known either.
  void run(const std::vector<PythonLine>& lines, bool open) {
    if (++nested_ > kDeepestBlock)
      throw InputError({file_.file_, "", fmt::format("blocks nest at most {} deep", kDeepestBlock), "", ""});
    for (std::size_t at = 0; at < lines.size() && !done_;) {
      const std::vector<PythonToken>& tokens = lines[at].tokens;
      if (++count_ > kMaxStatements)
        throw InputError({file_.file_, fmt::format("line {}", tokens[0].line),
                          fmt::format("a file runs at most {} statements", kMaxStatements), "", ""});
      const PythonToken& first = tokens[0];
      if (first.is_word("if")) {
        branches(lines, at, open);
      } else if (first.is_word("for") || first.is_word("while") || first.is_word("try") ||
                 first.is_word("except") || first.is_word("finally")) {
        const bool runs = first.is_word("try") || first.is_word("finally");
        run(python_block(lines, at), open || !runs);
      } else if (first.is_word("with")) {
        run(python_block(lines, at), open);
      } else if (first.is_word("def") || first.is_word("class") || first.is("@")) {
        python_block(lines, at);
      } else {
        if (first.is_word("return")) {
          if (open && open_return_ == 0) open_return_ = first.line;
          if (!open) returned_ = tokens.size() > 1 ? value(tokens, 1) : Json();
          done_ = !open;
        } else if (first.is_word("import") || first.is_word("from")) {
          import(tokens);
        } else if (!first.is_word("assert") && !first.is_word("raise")) {
          statement(tokens, open);
        }
        ++at;
      }
    }
    --nested_;
  }

  void branches(const std::vector<PythonLine>& lines, std::size_t& at, bool open) {
    int none = 1;  // of the branches before is taken: 1, 0, or -1 where that is not known
    do {
      const std::vector<PythonToken>& head = lines[at].tokens;
      const bool is_else = head[0].is_word("else");
      const std::size_t end = std::max<std::size_t>(2, python_head_end(head));
      const int holds =
          is_else     ? 1
          : none == 0 ? 0
                      : objects_.truth(
                            value({head.begin() + 1, head.begin() + static_cast<std::ptrdiff_t>(end) - 1}));
      std::vector<PythonLine> body;
      if (end < head.size())
        body.push_back({0, {head.begin() + static_cast<std::ptrdiff_t>(end), head.end()}});
      for (PythonLine& each : python_block(lines, at)) body.push_back(std::move(each));
      const int taken = none == 0 || holds == 0 ? 0 : none == 1 && holds == 1 ? 1 : -1;
      if (taken != 0) run(body, open || taken < 0);
      none = taken == 1 ? 0 : taken == -1 ? -1 : none;
    } while (!done_ && at < lines.size() &&
             (lines[at].tokens[0].is_word("elif") || lines[at].tokens[0].is_word("else")));
    while (done_ && at < lines.size()) python_block(lines, at);
  }

  void statement(const std::vector<PythonToken>& tokens, bool open) {
    static constexpr const char* kOps[] = {"=", "+=", "-=", "*=", "/=", "//="};
    int depth = 0;
    std::size_t equals = 0;
    std::string op;
    for (std::size_t i = 1; i < tokens.size() && equals == 0; ++i) {
      if (tokens[i].is("(") || tokens[i].is("[")) ++depth;
      if (tokens[i].is(")") || tokens[i].is("]")) --depth;
      for (const char* each : kOps)
        if (depth == 0 && tokens[i].is(each)) equals = i, op = each;
    }
    if (equals == 0) return expression(tokens, open);
    Json found = value(tokens, equals + 1);
    std::vector<PythonToken> target(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(equals));
    for (std::size_t i = 0; i < target.size(); ++i)
      if (target[i].is(":")) target.resize(i);  // of a type
    if (op != "=") {
      std::vector<PythonToken> sum = target;
      sum.push_back({PythonToken::Kind::op, op.substr(0, op.size() - 1), tokens[0].line});
      sum.insert(sum.end(), tokens.begin() + static_cast<std::ptrdiff_t>(equals) + 1, tokens.end());
      found = value(sum);
    }
    if (open) found = python_unknown(fmt::format("if_of_line_{}", tokens[0].line));
    assign(target, std::move(found));
  }

  // "map[key] = x" and "list[0] = x".
  void assign_at(const std::vector<PythonToken>& target, Json found) {
    std::size_t open = target.size() - 1;
    for (int depth = 0; open > 0; --open) {
      if (target[open].is("]")) ++depth;
      if (target[open].is("[") && --depth == 0) break;
    }
    if (open == 0) return;
    const std::vector<PythonToken> name(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(open));
    const Json key = value({target.begin() + static_cast<std::ptrdiff_t>(open) + 1, target.end() - 1});
    Json base = value(name);
    if (base.is_array()) return assign(name, python_unknown(python_text(base) + "[]"));
    objects_.set_at(base, key, std::move(found), target[0].line);
  }

  // "from a import b as c": c is another name of b.
  void import(const std::vector<PythonToken>& tokens) {
    for (std::size_t i = 1; i + 1 < tokens.size(); ++i)
      if (tokens[i].is_word("as") && tokens[i + 1].kind == PythonToken::Kind::name)
        frames_.back()[tokens[i + 1].text] = {{kPythonName, tokens[i - 1].text}};
  }

  // "list.append(x)" and "list.extend(y)" of a list that has a name.
  bool grows(const std::vector<PythonToken>& tokens, bool open) {
    std::size_t at = 1;
    while (at + 1 < tokens.size() && tokens[at].is(".") && tokens[at + 1].kind == PythonToken::Kind::name)
      at += 2;
    const bool is_call = at > 2 && at < tokens.size() && tokens[at].is("(");
    if (!is_call || !(tokens[at - 1].is_word("append") || tokens[at - 1].is_word("extend"))) return false;
    const std::vector<PythonToken> target(tokens.begin(),
                                          tokens.begin() + static_cast<std::ptrdiff_t>(at) - 2);
    Json list = value(target);
    if (!list.is_array()) return false;
    Json more = value(tokens, at + 1);
    const bool extends = tokens[at - 1].is_word("extend");
    if (open || (extends && !more.is_array()) || list.size() > kLongestList) {
      list = python_unknown(fmt::format("if_of_line_{}", tokens[0].line));
    } else if (extends) {
      for (Json& each : more) list.push_back(std::move(each));
    } else {
      list.push_back(std::move(more));
    }
    assign(target, std::move(list));
    return true;
  }

  // A call by itself: what it does to its arguments is not known, unless the file defines it.
  void expression(const std::vector<PythonToken>& tokens, bool open) {
    if (grows(tokens, open)) return;
    const Json made = value(tokens);
    const PythonObject* object = object_of(made);
    if (object == nullptr || object->made_by().empty() || is_python_class(object->made_by())) return;
    const bool takes_objects = std::ranges::any_of(
        object->fields, [](const auto& entry) { return is_python(entry.second, kPythonReference); });
    if (takes_objects) note_unread(tokens[0].line, object->made_by());
  }

  void assign(const std::vector<PythonToken>& target, Json found) {
    if (target.size() == 1) {
      frames_.back()[target[0].text] = std::move(found);
      return;
    }
    if (target.size() < 3) return;  // no name, as ".n = 1"
    const std::size_t last = target.size() - 1;
    if (target[last].kind == PythonToken::Kind::name && target[last - 1].is(".")) {
      const Json base = value({target.begin(), target.begin() + static_cast<std::ptrdiff_t>(last) - 1});
      PythonObject* object = object_of(base);
      if (object == nullptr) {  // "cfg.model" that nothing has set, or a call that is not read
        if (base.is_primitive() && !base.is_null()) return;  // which Python refuses
        const Json made = objects_.make({}, target[0].line, "?");
        assign({target.begin(), target.begin() + static_cast<std::ptrdiff_t>(last) - 1}, made);
        object = object_of(made);
      }
      object->fields[target[last].text] = std::move(found);
      object->lines[target[last].text] = target[0].line;
      return;
    }
    if (target[last].is("]")) return assign_at(target, std::move(found));
    for (std::size_t i = 0, index = 0; i < target.size(); i += 2, ++index)  // "a, b = f()"
      if (target[i].kind == PythonToken::Kind::name && (i + 1 == target.size() || target[i + 1].is(",")))
        frames_.back()[target[i].text] =
            found.is_array() && index < found.size() ? Json(found[index]) : python_unknown(target[i].text);
  }

  const PythonFile& file_;
  std::vector<Frame> frames_;
  PythonObjects objects_;
  std::vector<std::string> notes_;
  Json returned_;
  bool done_ = false;
  int open_return_ = 0;  // the first line that may return, which a condition decides that is not known
  int count_ = 0, nested_ = 0, deep_ = 0, calls_ = 0;
};

PythonResult PythonFile::call(const std::string& name) {
  std::vector<std::string> known;
  for (const std::string& each : own_)
    if (!each.starts_with('_')) known.push_back(each);
  if (!functions_.contains(name))
    throw InputError(
        {file_, "", "has no function of this name", "found " + name,
         nearest_name(name, known).empty() ? join(known).substr(0, 400) : nearest_name(name, known)});
  return PythonRun(*this).result(name);
}

}  // namespace rehearse
