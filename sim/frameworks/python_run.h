// Which values do the statements of a Python file assign, and its calls return? Used by PythonFile alone.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "frameworks/python_library.h"
#include "frameworks/python_values.h"

namespace rehearse {

class PythonRun {
 public:
  // `as_script`: blocks under "if __name__ == '__main__'" run.
  PythonRun(const PythonFile& file, bool as_script);

  PythonResult result(const std::string& function);
  PythonResult last_result();  // of the file's last statement that makes an object and gives it no name

 private:
  using Frame = std::map<std::string, Json>;

  // python_calls.cpp
  Json name(const std::string& name);
  Json attribute(const Json& value, const std::string& key);
  Json method(const Json& callee, const std::vector<PythonArgument>& arguments, int line);
  Json method_of_map(const Json& map, const std::string& key, const std::vector<PythonArgument>& arguments,
                     int line);
  Json call(const Json& callee, const std::vector<PythonArgument>& arguments, int line);
  Json call_by_name(const std::string& name, const std::vector<PythonArgument>& arguments, int line);
  Json made_of_class(const std::string& name, const std::vector<PythonArgument>& arguments, int line);
  Json of_library(const PythonLibraryFunction& function, const std::string& name,
                  const std::vector<PythonArgument>& arguments, int line);
  Json invoke(const PythonFunction& function, const std::vector<PythonArgument>& arguments, bool top = false);
  Frame frame_of(const PythonFunction& function, const std::vector<PythonArgument>& arguments, bool top);
  const PythonFunction* function_named(const std::string& name) const;  // null where the file has none
  bool is_function(const Json& value) const;                            // the name of one that is read
  void note_unread(int line, const std::string& name);

  // python_run.cpp
  PythonScope scope();
  Json value(const PythonTokens& tokens, std::size_t at = 0);
  void run(const std::vector<PythonLine>& lines, bool open);
  void loop(const std::vector<PythonLine>& lines, std::size_t& at, bool open);
  void branches(const std::vector<PythonLine>& lines, std::size_t& at, bool open);
  void statement(const PythonTokens& tokens, bool open);
  void loop_over(const PythonTokens& head, const std::vector<PythonLine>& body, bool open);
  void assign(const PythonTokens& target, Json found);
  void assign_each(const PythonTokens& targets, const Json& found);
  void assign_at(const PythonTokens& target, Json found);
  void import(const PythonTokens& tokens);
  bool grows(const PythonTokens& tokens, bool open);
  void expression(const PythonTokens& tokens, bool open);
  PythonResult written_out(const Json& value);

  const PythonFile& file_;
  std::vector<Frame> frames_;
  PythonObjects objects_;
  std::vector<std::string> notes_;
  Json returned_, last_;
  std::set<std::string> inner_;  // functions of functions, which are not read
  bool done_ = false, is_script_ = false, is_open_ = false;
  std::size_t iterations_ = 0;
  int open_return_ = 0;  // first line whose return depends on an unknown condition
  int count_ = 0, nested_ = 0, deep_ = 0, calls_ = 0, repeats_ = 0;
};

}  // namespace rehearse
