#include "frameworks/python_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

namespace {

constexpr int kMaxStatements = 20'000, kMaxRepeats = 20'000;
constexpr int kMaxLoop = 64;  // times that a loop runs
constexpr int kDeepestBlock = 300;
constexpr std::size_t kLongestList = 4096;

}  // namespace

PythonRun::PythonRun(const PythonFile& file, bool as_script)
    : file_(file), objects_(file.file_), is_script_(as_script) {
  frames_.emplace_back();
  frames_.front()["__name__"] = "imported";
  run(file.others_, false);
  frames_.front()["__name__"] = as_script ? "__main__" : "imported";
  run(file.globals_, false);
}

PythonResult PythonRun::result(const std::string& function) {
  return written_out(invoke(file_.functions_.at(function), {}, true));
}

PythonResult PythonRun::last_result() {
  return written_out(last_);
}

PythonResult PythonRun::written_out(const Json& value) {
  PythonResult found;
  found.json = objects_.written_out(value, found.lines);
  found.notes = std::move(notes_);
  return found;
}

PythonScope PythonRun::scope() {
  return {
      .name = [this](const std::string& each) { return name(each); },
      .attribute = [this](const Json& value, const std::string& key) { return attribute(value, key); },
      .call = [this](const Json& callee, const std::vector<PythonArgument>& all,
                     int line) { return call(callee, all, line); },
      .map = [this](const std::vector<PythonArgument>& all, int line) { return objects_.make(all, line); },
      .list = [this](const std::vector<PythonArgument>& all) { return objects_.list(all); },
      .at = [this](const Json& value, const Json& key) { return objects_.at(value, key); },
      .truth = [this](const Json& value) { return is_function(value) ? 1 : objects_.truth(value); },
      .is_none = [this](const Json& value) { return is_function(value) ? 0 : objects_.is_none(value); },
      .may_repeat = [this] { return ++repeats_ <= kMaxRepeats; }};
}

Json PythonRun::value(const PythonTokens& tokens, std::size_t at) {
  Json first = python_value(tokens, at, scope());
  if (at >= tokens.size() || !tokens[at].is(",")) return first;
  Json all = Json::array({std::move(first)});
  while (at < tokens.size() && tokens[at].is(",")) {
    if (++at < tokens.size()) all.push_back(python_value(tokens, at, scope()));
  }
  return all;
}

// `open`: whether the block runs is not known. Then its variables are not known either.
void PythonRun::run(const std::vector<PythonLine>& lines, bool open) {
  if (++nested_ > kDeepestBlock)
    throw InputError({file_.file_, "", fmt::format("blocks nest at most {} deep", kDeepestBlock), "", ""});
  for (std::size_t at = 0; at < lines.size() && !done_;) {
    const PythonTokens& tokens = lines[at].tokens;
    if (++count_ > kMaxStatements)
      throw InputError({file_.file_, fmt::format("line {}", tokens[0].line),
                        fmt::format("a file runs at most {} statements", kMaxStatements), "", ""});
    const PythonToken& first = tokens[0];
    if (first.is_word("if")) {
      branches(lines, at, open);
    } else if (first.is_word("while")) {
      loop(lines, at, open);
    } else if (first.is_word("for") || first.is_word("try") || first.is_word("except") ||
               first.is_word("finally")) {
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

// The loop runs as long as its condition is known to hold. Where that is not known, or a statement leaves the
// loop, its variables are not known.
void PythonRun::loop(const std::vector<PythonLine>& lines, std::size_t& at, bool open) {
  const PythonTokens& head = lines[at].tokens;
  const std::size_t end = std::max<std::size_t>(2, python_head_end(head));
  const PythonTokens condition(head.begin() + 1, head.begin() + static_cast<std::ptrdiff_t>(end) - 1);
  const std::vector<PythonLine> body = python_block(lines, at);
  const bool leaves = std::ranges::any_of(body, [](const PythonLine& line) {
    return line.tokens[0].is_word("break") || line.tokens[0].is_word("continue");
  });
  int holds = leaves || open ? -1 : 1;
  for (int i = 0; i < kMaxLoop && holds == 1 && !done_; ++i) {
    holds = objects_.truth(value(condition));
    if (holds == 1) run(body, false);
    if (i + 1 == kMaxLoop) holds = -1;
  }
  if (holds < 0 && !done_) run(body, true);
}

void PythonRun::branches(const std::vector<PythonLine>& lines, std::size_t& at, bool open) {
  int none = 1;  // of the branches before is taken: 1, 0, or -1 where that is not known
  do {
    const PythonTokens& head = lines[at].tokens;
    const bool is_else = head[0].is_word("else");
    const std::size_t end = std::max<std::size_t>(2, python_head_end(head));
    const int holds =
        is_else ? 1
        : none == 0
            ? 0
            : objects_.truth(value({head.begin() + 1, head.begin() + static_cast<std::ptrdiff_t>(end) - 1}));
    std::vector<PythonLine> body;
    if (end < head.size()) body.push_back({0, {head.begin() + static_cast<std::ptrdiff_t>(end), head.end()}});
    for (PythonLine& each : python_block(lines, at)) body.push_back(std::move(each));
    const int taken = none == 0 || holds == 0 ? 0 : none == 1 && holds == 1 ? 1 : -1;
    if (taken != 0) run(body, open || taken < 0);
    none = taken == 1 ? 0 : taken == -1 ? -1 : none;
  } while (!done_ && at < lines.size() &&
           (lines[at].tokens[0].is_word("elif") || lines[at].tokens[0].is_word("else")));
  while (done_ && at < lines.size()) python_block(lines, at);
}

void PythonRun::statement(const PythonTokens& tokens, bool open) {
  static constexpr std::array kOps = {"=", "+=", "-=", "*=", "/=", "//="};
  const std::size_t equals = python_outside_brackets(tokens, 0, [](const PythonToken& each) {
    return std::ranges::any_of(kOps, [&](const char* op) { return each.is(op); });
  });
  const bool assigns = equals > 0 && equals < tokens.size() && tokens[equals].nesting() == 0;
  if (!assigns) return expression(tokens, open);
  const std::string op = tokens[equals].text;
  Json found = value(tokens, equals + 1);
  PythonTokens target(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(equals));
  for (std::size_t i = 0; i < target.size(); ++i)
    if (target[i].is(":")) target.resize(i);  // of a type
  if (op != "=") {
    PythonTokens sum = target;
    sum.push_back({PythonToken::Kind::op, op.substr(0, op.size() - 1), tokens[0].line});
    sum.insert(sum.end(), tokens.begin() + static_cast<std::ptrdiff_t>(equals) + 1, tokens.end());
    found = value(sum);
  }
  if (open) found = python_unknown(fmt::format("if_of_line_{}", tokens[0].line));
  assign(target, std::move(found));
}

// "map[key] = x" and "list[0] = x".
void PythonRun::assign_at(const PythonTokens& target, Json found) {
  const std::size_t open = python_opening(target, target.size() - 1);
  if (open == 0) return;
  const PythonTokens name(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(open));
  const Json key = value({target.begin() + static_cast<std::ptrdiff_t>(open) + 1, target.end() - 1});
  Json base = value(name);
  if (base.is_array()) return assign(name, python_unknown(python_text(base) + "[]"));
  objects_.set_at(base, key, std::move(found), target[0].line);
}

// "from a import b as c": c is another name of b.
void PythonRun::import(const PythonTokens& tokens) {
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i)
    if (tokens[i].is_word("as") && tokens[i + 1].kind == PythonToken::Kind::name)
      frames_.back()[tokens[i + 1].text] = {{kPythonName, tokens[i - 1].text}};
}

// "list.append(x)" and "list.extend(y)" of a list that has a name.
bool PythonRun::grows(const PythonTokens& tokens, bool open) {
  std::size_t at = 1;
  while (at + 1 < tokens.size() && tokens[at].is(".") && tokens[at + 1].kind == PythonToken::Kind::name)
    at += 2;
  const bool is_call = at > 2 && at < tokens.size() && tokens[at].is("(");
  if (!is_call || !(tokens[at - 1].is_word("append") || tokens[at - 1].is_word("extend"))) return false;
  const PythonTokens target(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at) - 2);
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

// A call by itself. Its effect on its arguments is not known, unless the file defines it.
void PythonRun::expression(const PythonTokens& tokens, bool open) {
  if (grows(tokens, open)) return;
  const Json made = value(tokens);
  if (frames_.size() == 1 && is_python(made, kPythonReference)) last_ = made;
  const PythonObject* object = objects_.of(made);
  if (object == nullptr || object->made_by().empty() || is_python_class(object->made_by())) return;
  const bool takes_objects = std::ranges::any_of(
      object->fields, [](const auto& entry) { return is_python(entry.second, kPythonReference); });
  if (takes_objects) note_unread(tokens[0].line, object->made_by());
}

void PythonRun::assign(const PythonTokens& target, Json found) {
  if (target.size() == 1) {
    frames_.back()[target[0].text] = std::move(found);
    return;
  }
  if (target.size() < 3) return;  // no name, as ".n = 1"
  const std::size_t last = target.size() - 1;
  if (target[last].kind == PythonToken::Kind::name && target[last - 1].is(".")) {
    const Json base = value({target.begin(), target.begin() + static_cast<std::ptrdiff_t>(last) - 1});
    PythonObject* object = objects_.of(base);
    if (object == nullptr) {  // "cfg.model" that nothing has set, or a call that is not read
      if (base.is_primitive() && !base.is_null()) return;  // which Python refuses
      const Json made = objects_.make({}, target[0].line, "?");
      assign({target.begin(), target.begin() + static_cast<std::ptrdiff_t>(last) - 1}, made);
      object = objects_.of(made);
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

PythonResult PythonFile::call(const std::string& name) const {
  std::vector<std::string> known;
  for (const std::string& each : own_)
    if (!each.starts_with('_')) known.push_back(each);
  if (!functions_.contains(name))
    throw InputError(
        {file_, "", "has no function of this name", "found " + name,
         nearest_name(name, known).empty() ? join(known).substr(0, 400) : nearest_name(name, known)});
  return PythonRun(*this, false).result(name);
}

PythonResult PythonFile::run() const {
  return PythonRun(*this, true).last_result();
}

}  // namespace rehearse
