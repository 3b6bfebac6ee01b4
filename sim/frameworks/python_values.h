// Which configuration do the assignments of a Python file build? Nothing is run or imported.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frameworks/imported.h"
#include "frameworks/python_objects.h"
#include "frameworks/python_tokens.h"

namespace rehearse {

struct PythonFunction {
  enum class Bound : std::uint8_t { no, to_object, to_class };
  std::string name;
  std::vector<std::string> parameters;
  std::string others, rest;  // "*args" and "**kwargs" by their names; "" where it has none
  std::map<std::string, PythonTokens> defaults;
  std::set<std::string> plain;  // parameters that are a number, a text or a switch by their annotation
  std::vector<PythonLine> body;
  int line = 0;
  Bound first = Bound::no;  // of a function of a class: meaning of its first parameter
};

// "name: type = value" in the order of the class; values may be absent.
struct PythonClass {
  std::vector<std::pair<std::string, PythonTokens>> fields;
};

// The lines below the one at `at`, which are indented more; `at` moves behind them.
std::vector<PythonLine> python_block(const std::vector<PythonLine>& lines, std::size_t& at);

// A written-out configuration. Objects are maps, names of other modules are words, and an unknown value is
// "$" and its text. `lines`: by pointer.
struct PythonResult {
  Json json;
  std::map<std::string, int> lines;
  std::vector<std::string> notes;
  // Plain parameters of the called function without a default, which the user gives no value.
  std::vector<std::string> open_parameters = {};
};

// Functions of a file, of those that the user names, and of `library`, a description of the program's own.
class PythonFile {
 public:
  PythonFile(const std::string& text, const std::string& file, const ShellInputs& inputs,
             const std::string& library = "");

  // By their order; those that begin with '_' help others.
  const std::vector<std::string>& functions() const { return own_; }
  // "Class.function" of those of the file's own classes that make an object of their class.
  const std::vector<std::string>& class_methods() const { return class_methods_; }
  bool has(const std::string& function) const { return functions_.contains(function); }
  // The value that the function returns; "Class.function" names one of a class. InputError where there is no
  // such function.
  PythonResult call(const std::string& name) const;
  // Runs the file as a script: the result is the object that its last statement makes and gives no name.
  PythonResult run() const;

 private:
  friend class PythonRun;
  void read(const std::string& text, const std::string& file, bool own);
  void read_class(const PythonTokens& head, const std::vector<PythonLine>& body, bool own);
  void inherit(const PythonTokens& head, PythonClass& known);
  std::vector<std::string> open_parameters(const PythonFunction& function) const;

  std::string file_;
  std::map<std::string, std::string> given_;
  std::map<std::string, PythonFunction> functions_;  // those of classes as "Class.function"
  std::map<std::string, PythonClass> classes_;
  std::vector<std::string> own_, class_methods_;
  std::size_t inherited_ = 0;
  std::vector<PythonLine> others_, globals_;  // of other files, and of this one
};

}  // namespace rehearse
