// Which value does a Python expression have, as far as the file's own names tell? Used by PythonRun alone.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_reader.h"
#include "frameworks/python_tokens.h"

namespace rehearse {

inline constexpr const char* kPythonReference = "#";  // {"#": 3}, an object
inline constexpr const char* kPythonName = "@";       // {"@": "torch.float32"}, of another module
inline constexpr const char* kPythonUnknown = "?";    // {"?": "a // b"}, as it stands
inline constexpr const char* kPythonSpread = "**";    // the name of an argument "*x" or "**x"

bool is_python(const Json& value, const char* kind);
Json python_unknown(const std::string& text);
std::string python_text(const Json& value);

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

// Whether a value that is no object counts as true: 1, 0, or -1 where that is not known.
int python_truth(const Json& value);

}  // namespace rehearse
