// Which value does a Python expression have, as far as the file's own names tell? Used by PythonRun alone.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "frameworks/python_operators.h"
#include "frameworks/python_tokens.h"

namespace rehearse {

struct PythonArgument {
  std::string name;  // "" by position; kPythonSpread of "*x" and "**x"
  Json value;
};

// Functions of the run that an expression calls.
struct PythonScope {
  std::function<Json(const std::string&)> name;
  std::function<Json(const Json&, const std::string&)> attribute;
  std::function<Json(const Json&, const std::vector<PythonArgument>&, int)> call;
  std::function<Json(const std::vector<PythonArgument>&, int)> map;
  std::function<Json(const std::vector<PythonArgument>&)> list;
  std::function<Json(const Json&, const Json&)> at;  // of a map or list, by its key
  std::function<int(const Json&)> truth;             // 1, 0, or -1 where that is not known
  std::function<int(const Json&)> is_none;           // the same
  std::function<bool()> may_repeat;                  // whether a list may go on; bounds the time
};

// Reads from `at` on, and moves it behind the expression.
Json python_value(const std::vector<PythonToken>& tokens, std::size_t& at, const PythonScope& scope);

}  // namespace rehearse
