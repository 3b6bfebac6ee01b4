// Which words does a Python file hold, statement by statement?
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rehearse {

struct PythonToken {
  enum class Kind : std::uint8_t { name, number, text, op };
  Kind kind = Kind::op;
  std::string text;  // of a string its contents
  int line = 0;
  bool computed = false;  // an f-string, whose contents depend on values

  bool is(const char* op) const { return kind == Kind::op && text == op; }
  bool is_word(const char* word) const { return kind == Kind::name && text == word; }
  // 1 of a bracket that opens, -1 of one that closes, 0 of any other.
  int nesting() const;
};

// Up to the end of its line, whatever brackets it opens.
struct PythonLine {
  int indent = 0;
  std::vector<PythonToken> tokens;  // not empty
};

// The statements of "if x: a; b" stand on lines of their own, which are indented more than its head.
// InputError for strings and brackets that are not closed.
std::vector<PythonLine> python_lines(const std::string& text, const std::string& file);

using PythonTokens = std::vector<PythonToken>;

// The first token from `begin` on that `ends` takes, or that closes a bracket opened before `begin`. Tokens
// in brackets that open behind `begin` are skipped. The number of tokens where there is none.
std::size_t python_outside_brackets(const PythonTokens& tokens, std::size_t begin,
                                    const std::function<bool(const PythonToken&)>& ends);

// Behind the colon that ends "if x:" and "def f():".
std::size_t python_head_end(const PythonTokens& tokens);

// The bracket that the one at `close` closes; 0 where there is none.
std::size_t python_opening(const PythonTokens& tokens, std::size_t close);

}  // namespace rehearse
