// Which words does a Python file hold, statement by statement?
#pragma once

#include <cstdint>
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
};

// Up to the end of its line, whatever brackets it opens.
struct PythonLine {
  int indent = 0;
  std::vector<PythonToken> tokens;  // not empty
};

// InputError for strings and brackets that are not closed.
std::vector<PythonLine> python_lines(const std::string& text, const std::string& file);

}  // namespace rehearse
