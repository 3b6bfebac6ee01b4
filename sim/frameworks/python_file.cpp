#include "frameworks/python_values.h"

namespace rehearse {

// The lines below the one at `at`, which are indented more.
std::vector<PythonLine> python_block(const std::vector<PythonLine>& lines, std::size_t& at) {
  const int indent = lines[at].indent;
  std::vector<PythonLine> body;
  for (++at; at < lines.size() && lines[at].indent > indent; ++at) body.push_back(lines[at]);
  return body;
}

std::size_t python_head_end(const std::vector<PythonToken>& tokens) {
  int open = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].is("(") || tokens[i].is("[") || tokens[i].is("{")) ++open;
    if (tokens[i].is(")") || tokens[i].is("]") || tokens[i].is("}")) --open;
    if (open == 0 && tokens[i].is(":")) return i + 1;
  }
  return tokens.size();
}

namespace {

// "def f(a, b=1, *, c, **rest):".
PythonFunction signature(const std::vector<PythonToken>& tokens) {
  PythonFunction function;
  function.name = tokens[1].text;
  function.line = tokens[0].line;
  int depth = 0;
  for (std::size_t i = 3; i < tokens.size() && !(depth == 0 && tokens[i].is(")")); ++i) {
    if (tokens[i].is("(") || tokens[i].is("[") || tokens[i].is("{")) ++depth;
    if (tokens[i].is(")") || tokens[i].is("]") || tokens[i].is("}")) --depth;
    const bool is_name = depth == 0 && tokens[i].kind == PythonToken::Kind::name;
    if (is_name && (i == 3 || tokens[i - 1].is(","))) function.parameters.push_back(tokens[i].text);
    if (is_name && tokens[i - 1].is("**")) function.rest = tokens[i].text;
    if (is_name && tokens[i - 1].is("*")) function.others = tokens[i].text;
    if (depth != 0 || !tokens[i].is("=") || function.parameters.empty()) continue;
    std::vector<PythonToken>& fallback = function.defaults[function.parameters.back()];
    int inside = 0;
    for (std::size_t j = i + 1; j < tokens.size(); ++j) {
      if (inside == 0 && (tokens[j].is(",") || tokens[j].is(")"))) break;
      if (tokens[j].is("(") || tokens[j].is("[") || tokens[j].is("{")) ++inside;
      if (tokens[j].is(")") || tokens[j].is("]") || tokens[j].is("}")) --inside;
      fallback.push_back(tokens[j]);
    }
  }
  return function;
}

}  // namespace

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
    PythonFunction function = signature(tokens);
    function.body = python_block(lines, at);
    if (own) own_.push_back(function.name);
    functions_[function.name] = std::move(function);
  }
}

}  // namespace rehearse
