#include "frameworks/python_values.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "frameworks/python_expression.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

namespace {

constexpr int kMaxStatements = 20'000;
constexpr int kDeepestCall = 16, kMaxCalls = 300;
constexpr int kDeepestBlock = 300;
constexpr int kDeepestObject = 12;
constexpr std::size_t kMaxObjects = 20'000;
// The lines below the one at `at`, which are indented more.
std::vector<PythonLine> block_below(const std::vector<PythonLine>& lines, std::size_t& at) {
  const int indent = lines[at].indent;
  std::vector<PythonLine> body;
  for (++at; at < lines.size() && lines[at].indent > indent; ++at) body.push_back(lines[at]);
  return body;
}

// Behind the colon that ends "if x:" and "def f():"; of "if x: y" the statement behind it.
std::size_t end_of_head(const std::vector<PythonToken>& tokens) {
  int open = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].is("(") || tokens[i].is("[") || tokens[i].is("{")) ++open;
    if (tokens[i].is(")") || tokens[i].is("]") || tokens[i].is("}")) --open;
    if (open == 0 && tokens[i].is(":")) return i + 1;
  }
  return tokens.size();
}

}  // namespace

// One call of one function, with what it makes.
class PythonRun {
 public:
  explicit PythonRun(const PythonFile& file) : file_(file) {
    frames_.emplace_back();
    run(file.globals_, false);
  }

  PythonResult result(const std::string& name) {
    PythonResult found;
    found.json = written_out(invoke(file_.functions_.at(name), {}), "", 0, found.lines);
    found.notes = std::move(notes_);
    return found;
  }

 private:
  using Frame = std::map<std::string, Json>;

  Json make(const std::vector<PythonArgument>& fields, int line, const std::string& made_by = "") {
    if (objects_.size() >= kMaxObjects)
      throw InputError({file_.file_, fmt::format("line {}", line),
                        fmt::format("a configuration has at most {} objects", kMaxObjects), "", ""});
    PythonObject object;
    if (!made_by.empty()) object.fields[kPythonMadeBy] = made_by;
    int position = 0;
    for (const PythonArgument& each : fields) {
      if (each.name == "**") {
        if (const PythonObject* other = object_of(each.value))
          object.fields.insert(other->fields.begin(), other->fields.end());
        continue;
      }
      const std::string key = each.name.empty() ? std::to_string(position++) : each.name;
      object.fields[key] = each.value;
      object.lines[key] = line;
    }
    objects_.push_back(std::move(object));
    return {{kPythonReference, objects_.size() - 1}};
  }

  PythonObject* object_of(const Json& value) {
    return is_python(value, kPythonReference) ? &objects_[value[kPythonReference].get<std::size_t>()]
                                              : nullptr;
  }

  Json name(const std::string& name) {
    if (const auto given = file_.given_.find(name); given != file_.given_.end())
      return plain_yaml(given->second);
    for (const Frame* frame : {&frames_.back(), &frames_.front()})
      if (const auto found = frame->find(name); found != frame->end()) return found->second;
    return {{kPythonName, name}};
  }

  // A method that is not known returns its own object, as builders do.
  Json attribute(const Json& value, const std::string& key) {
    if (is_python(value, kPythonName)) return {{kPythonName, python_text(value) + "." + key}};
    if (const PythonObject* object = object_of(value)) {
      const auto found = object->fields.find(key);
      if (found != object->fields.end()) return found->second;
      methods_[key] = value;
      return {{kPythonName, "." + key}};
    }
    return python_unknown(python_text(value) + "." + key);
  }

  Json call(const Json& callee, const std::vector<PythonArgument>& arguments, int line) {
    if (callee.is_number()) return callee;  // "get_world_size=64", as the user hands it in
    if (!is_python(callee, kPythonName)) return python_unknown(python_text(callee) + "()");
    const std::string name = python_text(callee);
    if (name.starts_with('.')) return methods_[name.substr(1)];
    if (const auto own = file_.functions_.find(name); own != file_.functions_.end())
      return invoke(own->second, arguments);
    if (name == "dict") return make(arguments, line);
    const bool one = arguments.size() == 1 && arguments[0].name.empty();
    if ((name == "int" || name == "float") && one && arguments[0].value.is_number())
      return name == "int" ? Json(static_cast<std::int64_t>(arguments[0].value.get<double>()))
                           : arguments[0].value;
    if ((name == "max" || name == "min") && arguments.size() > 1 &&
        std::ranges::all_of(arguments, [](const auto& each) { return each.value.is_number(); })) {
      const auto less = [](const auto& a, const auto& b) {
        return a.value.template get<double>() < b.value.template get<double>();
      };
      return name == "max" ? std::ranges::max_element(arguments, less)->value
                           : std::ranges::min_element(arguments, less)->value;
    }
    if (name == "replace" || name == "copy.deepcopy" || name == "deepcopy" || name == "dataclasses.replace")
      return copy(arguments, line);
    return make(arguments, line, name);
  }

  Json copy(const std::vector<PythonArgument>& arguments, int line) {
    PythonObject* const from = arguments.empty() ? nullptr : object_of(arguments[0].value);
    if (from == nullptr) return python_unknown("copy");
    const PythonObject fields = *from;
    const Json made = make({arguments.begin() + 1, arguments.end()}, line);
    PythonObject& object = *object_of(made);
    object.fields.insert(fields.fields.begin(), fields.fields.end());
    return made;
  }

  Json invoke(const PythonFunction& function, const std::vector<PythonArgument>& arguments) {
    if (deep_ >= kDeepestCall || ++calls_ > kMaxCalls) return python_unknown(function.name + "()");
    ++deep_;
    Frame frame;
    std::size_t position = 0;
    for (const PythonArgument& each : arguments) {
      if (!each.name.empty())
        frame[each.name] = each.value;
      else if (position < function.parameters.size())
        frame[function.parameters[position++]] = each.value;
    }
    for (const std::string& parameter : function.parameters) {
      if (frame.contains(parameter)) continue;
      const auto fallback = function.defaults.find(parameter);
      const auto given = file_.given_.find(parameter);
      frame[parameter] = given != file_.given_.end()           ? plain_yaml(given->second)
                         : fallback == function.defaults.end() ? python_unknown(parameter)
                                                               : value(fallback->second);
    }
    frames_.push_back(std::move(frame));
    returned_ = nullptr;
    done_ = false;
    run(function.body, false);
    done_ = false;
    frames_.pop_back();
    --deep_;
    return std::exchange(returned_, nullptr);
  }

  PythonScope scope() {
    return {[this](const std::string& each) { return name(each); },
            [this](const Json& value, const std::string& key) { return attribute(value, key); },
            [this](const Json& callee, const std::vector<PythonArgument>& all, int line) {
              return call(callee, all, line);
            },
            [this](const std::vector<PythonArgument>& all, int line) { return make(all, line); }};
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
        run(block_below(lines, at), open || !runs);
      } else if (first.is_word("with")) {
        run(block_below(lines, at), open);
      } else if (first.is_word("def") || first.is_word("class") || first.is("@")) {
        block_below(lines, at);
      } else {
        if (first.is_word("return") && !open) {
          returned_ = tokens.size() > 1 ? value(tokens, 1) : Json();
          done_ = true;
        } else if (!first.is_word("import") && !first.is_word("from") && !first.is_word("return") &&
                   !first.is_word("assert") && !first.is_word("raise")) {
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
      const std::size_t end = std::max<std::size_t>(2, end_of_head(head));
      const int holds =
          is_else ? 1
          : none == 0
              ? 0
              : python_truth(value({head.begin() + 1, head.begin() + static_cast<std::ptrdiff_t>(end) - 1}));
      std::vector<PythonLine> body;
      if (end < head.size())
        body.push_back({0, {head.begin() + static_cast<std::ptrdiff_t>(end), head.end()}});
      for (PythonLine& each : block_below(lines, at)) body.push_back(std::move(each));
      const int taken = none == 0 || holds == 0 ? 0 : none == 1 && holds == 1 ? 1 : -1;
      if (taken != 0) run(body, open || taken < 0);
      none = taken == 1 ? 0 : taken == -1 ? -1 : none;
    } while (!done_ && at < lines.size() &&
             (lines[at].tokens[0].is_word("elif") || lines[at].tokens[0].is_word("else")));
    while (done_ && at < lines.size()) block_below(lines, at);
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
    if (equals == 0) {
      const Json made = value(tokens);
      const PythonObject* object = object_of(made);
      if (object == nullptr || !object->fields.contains(kPythonMadeBy)) return;
      for (const auto& [key, each] : object->fields)
        if (is_python(each, kPythonReference))
          notes_.push_back(
              fmt::format("line {}: {} is not read, and may change the configuration: pass --source "
                          "FILE",
                          tokens[0].line, object->fields.at(kPythonMadeBy).get<std::string>()));
      return;
    }
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
        Json made = make({}, target[0].line);
        object = object_of(made);
        const std::size_t index = objects_.size() - 1;
        assign({target.begin(), target.begin() + static_cast<std::ptrdiff_t>(last) - 1}, std::move(made));
        object = &objects_[index];
      }
      object->fields[target[last].text] = std::move(found);
      object->lines[target[last].text] = target[0].line;
      return;
    }
    for (std::size_t i = 0, index = 0; i < target.size(); i += 2, ++index)  // "a, b = f()"
      if (target[i].kind == PythonToken::Kind::name && (i + 1 == target.size() || target[i + 1].is(",")))
        frames_.back()[target[i].text] =
            found.is_array() && index < found.size() ? Json(found[index]) : python_unknown(target[i].text);
  }

  Json written_out(const Json& value, const std::string& pointer, int depth,
                   std::map<std::string, int>& lines) {
    if (depth > kDeepestObject || ++written_ > kMaxStatements) return "$deep";
    if (is_python(value, kPythonUnknown)) return "$" + python_text(value);
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
    const PythonObject* object = object_of(value);
    if (object == nullptr) return value;
    Json all = Json::object();
    const PythonObject fields = *object;
    for (const auto& [key, each] : fields.fields) {
      const std::string below = pointer + "/" + pointer_step(key);
      all[key] = written_out(each, below, depth + 1, lines);
      if (const auto line = fields.lines.find(key); line != fields.lines.end() && depth < kDeepestObject)
        lines[below] = line->second;
    }
    return all;
  }

  const PythonFile& file_;
  std::vector<Frame> frames_;
  std::vector<PythonObject> objects_;
  std::map<std::string, Json> methods_;
  std::vector<std::string> notes_;
  Json returned_;
  bool done_ = false;
  int count_ = 0, nested_ = 0, written_ = 0, deep_ = 0, calls_ = 0;
};

PythonFile::PythonFile(const std::string& text, const std::string& file, const ShellInputs& inputs)
    : file_(file), given_(inputs.variables) {
  for (const auto& [name, source] : inputs.files) read(source, name, false);
  read(text, file, true);
}

void PythonFile::read(const std::string& text, const std::string& file, bool own) {
  const std::vector<PythonLine> lines = python_lines(text, file);
  for (std::size_t at = 0; at < lines.size();) {
    const std::vector<PythonToken>& tokens = lines[at].tokens;
    if (!tokens[0].is_word("def") || tokens.size() < 4 || lines[at].indent > 0) {
      globals_.push_back(lines[at++]);
      continue;
    }
    PythonFunction function;
    function.name = tokens[1].text;
    function.line = tokens[0].line;
    int depth = 0;
    for (std::size_t i = 3; i < tokens.size() && !(depth == 0 && tokens[i].is(")")); ++i) {
      if (tokens[i].is("(") || tokens[i].is("[")) ++depth;
      if (tokens[i].is(")") || tokens[i].is("]")) --depth;
      const bool begins =
          depth == 0 && (i == 3 || tokens[i - 1].is(",")) && tokens[i].kind == PythonToken::Kind::name;
      if (begins) function.parameters.push_back(tokens[i].text);
      if (depth != 0 || !tokens[i].is("=") || function.parameters.empty()) continue;
      std::vector<PythonToken>& fallback = function.defaults[function.parameters.back()];
      int inside = 0;
      for (std::size_t j = i + 1; j < tokens.size(); ++j) {
        if (inside == 0 && (tokens[j].is(",") || tokens[j].is(")"))) break;
        if (tokens[j].is("(") || tokens[j].is("[")) ++inside;
        if (tokens[j].is(")") || tokens[j].is("]")) --inside;
        fallback.push_back(tokens[j]);
      }
    }
    function.body = block_below(lines, at);
    if (own) own_.push_back(function.name);
    functions_[function.name] = std::move(function);
  }
}

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
