// Which configuration do the assignments of a Python file build? Nothing is run or imported.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "frameworks/imported.h"
#include "frameworks/python_objects.h"
#include "frameworks/python_tokens.h"

namespace rehearse {

struct PythonFunction {
  std::string name;
  std::vector<std::string> parameters;
  std::string others, rest;  // "*args" and "**kwargs" by their names; "" where it has none
  std::map<std::string, std::vector<PythonToken>> defaults;
  std::vector<PythonLine> body;
  int line = 0;
};

// The lines below the one at `at`, which are indented more; `at` moves behind them.
std::vector<PythonLine> python_block(const std::vector<PythonLine>& lines, std::size_t& at);

// Behind the colon that ends "if x:" and "def f():"; of "if x: y" the statement behind it.
std::size_t python_head_end(const std::vector<PythonToken>& tokens);

// A configuration, written out: objects are maps, names of other modules are words, and what is not known is
// "$" and its text. `lines`: by pointer.
struct PythonResult {
  Json json;
  std::map<std::string, int> lines;
  std::vector<std::string> notes;
};

// Functions of a file, and of those that the user names.
class PythonFile {
 public:
  PythonFile(const std::string& text, const std::string& file, const ShellInputs& inputs);

  // By their order; those that begin with '_' help others.
  const std::vector<std::string>& functions() const { return own_; }
  // What the function returns. InputError where there is no such function.
  PythonResult call(const std::string& name);

 private:
  friend class PythonRun;
  void read(const std::string& text, const std::string& file, bool own);

  std::string file_;
  std::map<std::string, std::string> given_;
  std::map<std::string, PythonFunction> functions_;
  std::vector<std::string> own_;
  std::vector<PythonLine> globals_;
};

}  // namespace rehearse
