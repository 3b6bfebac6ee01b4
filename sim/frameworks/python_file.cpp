#include "frameworks/python_values.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace rehearse {

// The lines below the one at `at`, which are indented more.
std::vector<PythonLine> python_block(const std::vector<PythonLine>& lines, std::size_t& at) {
  const int indent = lines[at].indent;
  std::vector<PythonLine> body;
  for (++at; at < lines.size() && lines[at].indent > indent; ++at) body.push_back(lines[at]);
  return body;
}

namespace {

constexpr std::size_t kMaxInherited = 20'000;  // fields and functions of all classes
const std::set<std::string> kPlainTypes = {"int", "str", "float", "bool"};

// "def f(a, b: int = 1, *c, d, **rest):", one parameter after the other.
PythonFunction signature(const PythonTokens& tokens) {
  PythonFunction function;
  function.name = tokens[1].text;
  function.line = tokens[0].line;
  for (std::size_t at = 3; at < tokens.size() && !tokens[at].is(")"); ++at) {
    const std::size_t end =
        python_outside_brackets(tokens, at, [](const PythonToken& each) { return each.is(","); });
    const PythonToken& first = tokens[at];
    const std::string next = at + 1 < end ? tokens[at + 1].text : "";
    if (first.is("**")) {
      function.rest = next;
    } else if (first.is("*")) {
      function.others = next;
    } else if (first.kind == PythonToken::Kind::name) {
      function.parameters.push_back(first.text);
      if (next == ":" && at + 2 < end && kPlainTypes.contains(tokens[at + 2].text))
        function.plain.insert(first.text);
      const std::size_t equals =
          python_outside_brackets(tokens, at, [](const PythonToken& each) { return each.is("="); });
      if (equals < end)
        function.defaults[first.text] = {tokens.begin() + static_cast<std::ptrdiff_t>(equals) + 1,
                                         tokens.begin() + static_cast<std::ptrdiff_t>(end)};
    }
    at = end;
    if (end >= tokens.size() || tokens[end].nesting() < 0) break;
  }
  return function;
}

}  // namespace

PythonFile::PythonFile(const std::string& text, const std::string& file, const ShellInputs& inputs,
                       const std::string& library)
    : file_(file), given_(inputs.variables) {
  read(library, "", false);
  for (const auto& [name, source] : inputs.files) read(source, name, false);
  read(text, file, true);
}

void PythonFile::read(const std::string& text, const std::string& file, bool own) {
  std::vector<PythonLine> lines = python_lines(text, file);
  if (file.empty())  // no line of the user's script
    for (PythonLine& each : lines)
      for (PythonToken& token : each.tokens) token.line = 0;
  for (std::size_t at = 0; at < lines.size();) {
    const PythonTokens& tokens = lines[at].tokens;
    const bool names = lines[at].indent == 0 && tokens.size() > 2;
    if (names && tokens[0].is_word("class")) {
      const PythonTokens head = tokens;
      read_class(head, python_block(lines, at), own);
    } else if (names && tokens[0].is_word("def") && tokens.size() > 3) {
      PythonFunction function = signature(tokens);
      function.body = python_block(lines, at);
      if (own) own_.push_back(function.name);
      functions_[function.name] = std::move(function);
    } else {
      (own ? globals_ : others_).push_back(lines[at++]);
    }
  }
}

// "class Name(Base, ...)" begins with the fields and functions of the bases that are read.
void PythonFile::inherit(const PythonTokens& head, PythonClass& known) {
  const std::string& name = head[1].text;
  for (std::size_t at = 3; at < head.size() && !head[at].is(")"); ++at) {
    const std::string base = head[at].text + ".";
    const auto from = classes_.find(head[at].text);
    if (from == classes_.end() || head[at].text == name || head[at - 1].is("=")) continue;
    inherited_ += from->second.fields.size();
    if (inherited_ > kMaxInherited)
      throw InputError({file_, fmt::format("line {}", head[0].line),
                        fmt::format("classes inherit at most {} fields and functions", kMaxInherited), "",
                        ""});
    known.fields.insert(known.fields.end(), from->second.fields.begin(), from->second.fields.end());
    std::vector<PythonFunction> functions;
    for (auto each = functions_.lower_bound(base); each != functions_.end() && each->first.starts_with(base);
         ++each)
      functions.push_back(each->second);
    inherited_ += functions.size();
    for (PythonFunction& each : functions) functions_.emplace(name + "." + each.name, std::move(each));
  }
}

void PythonFile::read_class(const PythonTokens& head, const std::vector<PythonLine>& body, bool own) {
  const std::string& name = head[1].text;
  PythonClass known;
  inherit(head, known);
  PythonFunction::Bound first = PythonFunction::Bound::to_object;
  for (std::size_t at = 0; at < body.size();) {
    const PythonTokens& tokens = body[at].tokens;
    const std::vector<PythonLine> below = python_block(body, at);
    if (tokens[0].is("@") && tokens.size() > 1) {
      if (tokens[1].is_word("classmethod")) first = PythonFunction::Bound::to_class;
      if (tokens[1].is_word("staticmethod")) first = PythonFunction::Bound::no;
      continue;
    }
    if (tokens[0].is_word("def") && tokens.size() > 3) {
      PythonFunction function = signature(tokens);
      function.body = below;
      function.first = first;
      if (own && first == PythonFunction::Bound::to_class)
        class_methods_.push_back(name + "." + function.name);
      functions_[name + "." + function.name] = std::move(function);
    } else if (tokens.size() > 2 && tokens[0].kind == PythonToken::Kind::name && tokens[1].is(":")) {
      const std::size_t equals =
          python_outside_brackets(tokens, 2, [](const PythonToken& each) { return each.is("="); });
      PythonTokens value;
      if (equals + 1 < tokens.size())
        value.assign(tokens.begin() + static_cast<std::ptrdiff_t>(equals) + 1, tokens.end());
      const auto same =
          std::ranges::find(known.fields, tokens[0].text, [](const auto& field) { return field.first; });
      if (same == known.fields.end())
        known.fields.emplace_back(tokens[0].text, std::move(value));
      else
        same->second = std::move(value);
    }
    first = PythonFunction::Bound::to_object;
  }
  classes_[name] = std::move(known);
}

std::vector<std::string> PythonFile::open_parameters(const PythonFunction& function) const {
  std::vector<std::string> open = function.parameters;
  std::erase_if(open, [&](const std::string& name) {
    return !function.plain.contains(name) || function.defaults.contains(name) || given_.contains(name);
  });
  return open;
}

}  // namespace rehearse
