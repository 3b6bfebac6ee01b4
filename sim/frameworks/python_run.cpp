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
constexpr int kMaxLoop = 64;                 // times that a loop runs
constexpr std::size_t kMaxIterations = 512;  // of all loops over lists
constexpr std::size_t kLongestTarget = 200;  // words
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
  Json all = Json::array({first});
  const bool is_tuple = at < tokens.size() && tokens[at].is(",");
  while (at < tokens.size() && tokens[at].is(",")) {
    if (++at < tokens.size()) all.push_back(python_value(tokens, at, scope()));
  }
  if (at < tokens.size()) return python_unknown(tokens[at].text);
  return is_tuple ? all : first;
}

// `open`: whether the block runs is not known. Then its variables are not known either, nor those that the
// functions set which it calls.
void PythonRun::run(const std::vector<PythonLine>& lines, bool open) {
  open = open || is_open_;
  const bool before = std::exchange(is_open_, open);
  if (++nested_ > kDeepestBlock)
    throw InputError({file_.file_, "", fmt::format("blocks nest at most {} deep", kDeepestBlock), "", ""});
  for (std::size_t at = 0; at < lines.size() && !done_;) {
    const PythonTokens& tokens = lines[at].tokens;
    if (++count_ > kMaxStatements)
      throw InputError({file_.file_, fmt::format("line {}", tokens[0].line),
                        fmt::format("a file runs at most {} statements", kMaxStatements), "", ""});
    const PythonToken& first = tokens[0];
    const bool has_block = at + 1 < lines.size() && lines[at + 1].indent > lines[at].indent;
    if (first.is_word("if")) {
      branches(lines, at, open);
    } else if (first.is_word("while") || first.is_word("for")) {
      loop(lines, at, open);
    } else if (first.is_word("def") || first.is_word("class") || first.is("@")) {
      if (first.is_word("def") && tokens.size() > 1 && frames_.size() > 1) inner_.insert(tokens[1].text);
      python_block(lines, at);
    } else if (has_block) {  // others, such as "except x:", "else:" of a loop, "case x:", may run or not
      const bool runs = first.is_word("try") || first.is_word("finally") || first.is_word("with");
      run(python_block(lines, at), open || !runs);
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
  is_open_ = before;
}

// "while x:" runs as long as its condition is known to hold, "for x in y:" for each value of a known list.
// Where that is not known, or a statement leaves the loop, its variables are not known.
void PythonRun::loop(const std::vector<PythonLine>& lines, std::size_t& at, bool open) {
  const PythonTokens& head = lines[at].tokens;
  const std::size_t end = std::max<std::size_t>(2, python_head_end(head));
  const PythonTokens condition(head.begin() + 1, head.begin() + static_cast<std::ptrdiff_t>(end) - 1);
  const std::vector<PythonLine> body = python_block(lines, at);
  const bool leaves = std::ranges::any_of(body, [](const PythonLine& line) {
    return line.tokens[0].is_word("break") || line.tokens[0].is_word("continue");
  });
  if (head[0].is_word("for")) return loop_over(condition, body, open || leaves);
  int holds = leaves || open ? -1 : 1;
  for (int i = 0; i < kMaxLoop && holds == 1 && !done_; ++i) {
    holds = objects_.truth(value(condition));
    if (holds == 1) run(body, false);
    if (i + 1 == kMaxLoop) holds = -1;
  }
  if (holds < 0 && !done_) run(body, true);
}

// `head`: "x in y".
void PythonRun::loop_over(const PythonTokens& head, const std::vector<PythonLine>& body, bool open) {
  const std::size_t in =
      python_outside_brackets(head, 0, [](const PythonToken& each) { return each.is_word("in"); });
  if (in >= head.size()) return run(body, true);
  const PythonTokens target(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(in));
  const Json values = value(head, in + 1);
  iterations_ += values.size();
  if (open || !values.is_array() || iterations_ > kMaxIterations) {
    assign(target, python_unknown(fmt::format("for_of_line_{}", head[0].line)));
    return run(body, true);
  }
  for (const Json& each : values) {
    assign(target, each);
    run(body, false);
    if (done_) return;
  }
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
    const std::vector<PythonLine> body = python_block(lines, at);
    const int taken = none == 0 || holds == 0 ? 0 : none == 1 && holds == 1 ? 1 : -1;
    if (taken != 0) run(body, open || taken < 0);
    none = taken == 1 ? 0 : taken == -1 ? -1 : none;
  } while (!done_ && at < lines.size() &&
           (lines[at].tokens[0].is_word("elif") || lines[at].tokens[0].is_word("else")));
  while (done_ && at < lines.size()) python_block(lines, at);
}

// "a = b = x" has two targets, and "a *= x + y" computes "a * (x + y)".
void PythonRun::statement(const PythonTokens& tokens, bool open) {
  static constexpr std::array kOps = {
      "=", "+=", "-=", "*=", "/=", "//=", "%=", "**=", "|=", "&=", "^=", "<<=", ">>=", "@="};
  const auto operator_from = [&](std::size_t begin) {
    return python_outside_brackets(tokens, begin, [](const PythonToken& each) {
      return each.is_word("lambda") || std::ranges::any_of(kOps, [&](const char* op) { return each.is(op); });
    });
  };
  const auto assigns = [&](std::size_t at) {
    return at > 0 && at < tokens.size() && tokens[at].nesting() == 0 && !tokens[at].is_word("lambda");
  };
  const auto part = [&](std::size_t begin, std::size_t end) {
    return PythonTokens(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                        tokens.begin() + static_cast<std::ptrdiff_t>(end));
  };
  std::vector<PythonTokens> targets;
  std::size_t begin = 0;
  for (std::size_t at = operator_from(0); assigns(at); at = operator_from(begin)) {
    targets.push_back(part(begin, at));
    begin = at + 1;
    if (!tokens[at].is("=")) break;
  }
  if (targets.empty()) return expression(tokens, open);
  targets[0].resize(python_head_end(targets[0]));
  if (targets[0].back().is(":")) targets[0].pop_back();  // before a type
  const std::string op = tokens[begin - 1].text;
  PythonTokens computed = part(begin, tokens.size());
  if (op != "=") {
    const auto word = [&](const std::string& text) {
      return PythonToken{PythonToken::Kind::op, text, tokens[0].line};
    };
    computed.insert(computed.begin(), {word(op.substr(0, op.size() - 1)), word("(")});
    computed.insert(computed.begin(), targets.back().begin(), targets.back().end());
    computed.push_back(word(")"));
  }
  const Json found = value(computed);
  for (const PythonTokens& target : targets)
    assign(target, open ? python_unknown(fmt::format("if_of_line_{}", tokens[0].line)) : found);
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

// Methods that change a list which has a name. "append" and "extend" are followed.
bool PythonRun::grows(const PythonTokens& tokens, bool open) {
  std::size_t at = 1;
  while (at + 1 < tokens.size() && tokens[at].is(".") && tokens[at + 1].kind == PythonToken::Kind::name)
    at += 2;
  const bool is_call = at > 2 && at < tokens.size() && tokens[at].is("(");
  static constexpr std::array kChanges = {"append", "extend", "insert", "remove",
                                          "pop",    "clear",  "sort",   "reverse"};
  if (!is_call ||
      std::ranges::none_of(kChanges, [&](const char* name) { return tokens[at - 1].is_word(name); }))
    return false;
  const PythonTokens target(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at) - 2);
  Json list = value(target);
  if (!list.is_array()) return false;
  const std::size_t close = python_outside_brackets(tokens, at + 1, [](const PythonToken&) { return false; });
  Json more = value({tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                     tokens.begin() + static_cast<std::ptrdiff_t>(close)});
  const bool extends = tokens[at - 1].is_word("extend"), appends = tokens[at - 1].is_word("append");
  if (open || (!extends && !appends) || (extends && !more.is_array()) || list.size() > kLongestList) {
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
  if (tokens[0].is_word("del") && tokens.size() > 1)
    return assign({tokens.begin() + 1, tokens.end()},
                  python_unknown(fmt::format("del_of_line_{}", tokens[0].line)));
  const Json made = value(tokens);
  if (frames_.size() == 1 && is_python(made, kPythonReference)) last_ = made;
  const PythonObject* object = objects_.of(made);
  if (object == nullptr || object->made_by().empty() || is_python_class(object->made_by())) return;
  const bool takes_objects = std::ranges::any_of(
      object->fields, [](const auto& entry) { return is_python(entry.second, kPythonReference); });
  if (takes_objects || inner_.contains(object->made_by())) note_unread(tokens[0].line, object->made_by());
}

// "a, b.c = f()": each of the values to its own target.
void PythonRun::assign_each(const PythonTokens& targets, const Json& found) {
  const bool has_star = std::ranges::any_of(targets, [](const PythonToken& each) { return each.is("*"); });
  std::size_t index = 0;
  for (std::size_t begin = 0; begin < targets.size(); ++index) {
    const std::size_t end =
        python_outside_brackets(targets, begin, [](const PythonToken& each) { return each.is(","); });
    const std::size_t first = targets[begin].is("*") ? begin + 1 : begin;
    const PythonTokens target(targets.begin() + static_cast<std::ptrdiff_t>(std::min(first, end)),
                              targets.begin() + static_cast<std::ptrdiff_t>(end));
    const bool is_known = found.is_array() && index < found.size() && !has_star;
    assign(target, is_known ? Json(found[index]) : python_unknown(target.empty() ? "" : target[0].text));
    begin = end + 1;
  }
}

void PythonRun::assign(const PythonTokens& target, Json found) {
  if (target.size() > kLongestTarget)
    throw InputError({file_.file_, fmt::format("line {}", target[0].line),
                      fmt::format("a value is assigned to at most {} words", kLongestTarget), "", ""});
  const std::size_t comma =
      python_outside_brackets(target, 0, [](const PythonToken& each) { return each.is(","); });
  if (comma < target.size() && target[comma].is(",")) return assign_each(target, found);
  if (target.size() > 2 && (target[0].is("(") || target[0].is("[")) &&
      python_opening(target, target.size() - 1) == 0)
    return assign({target.begin() + 1, target.end() - 1}, std::move(found));
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
  if (target[last].is("]")) assign_at(target, std::move(found));
}

PythonResult PythonFile::call(const std::string& name) const {
  std::vector<std::string> known;
  for (const std::string& each : own_)
    if (!each.starts_with('_')) known.push_back(each);
  if (!functions_.contains(name))
    throw InputError(
        {file_, "", "has no function of this name", "found " + name,
         nearest_name(name, known).empty() ? join(known).substr(0, 400) : nearest_name(name, known)});
  PythonResult found = PythonRun(*this, false).result(name);
  found.open_parameters = open_parameters(functions_.at(name));
  return found;
}

PythonResult PythonFile::run() const {
  return PythonRun(*this, true).last_result();
}

}  // namespace rehearse
