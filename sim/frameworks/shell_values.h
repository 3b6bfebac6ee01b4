// Which values do the variables of a shell script hold, and to which words does a word expand?
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frameworks/imported.h"
#include "frameworks/shell_tokens.h"

namespace rehearse {

// One element, or those of an array.
using ShellValue = std::vector<ShellText>;

class ShellValues {
 public:
  ShellValues(const std::string& file, const ShellInputs& inputs);

  // The words to which a word of the script expands. $NAME that the script does not set stays as written.
  std::vector<ShellText> words(const ShellToken& word, const BranchPointer& branch);
  // The same as one word, with or without its quotes taken as such.
  ShellText whole(const std::string& word, int line, const BranchPointer& branch);

  // NAME=value, NAME+=value, NAME=(...)
  void assign(const ShellToken& word, const BranchPointer& branch);
  // In an undecided branch, the variable has either its old or its new value.
  void set(const std::string& name, ShellValue value, const BranchPointer& branch);
  void unset(const std::string& name) { values_.erase(name); }
  const ShellValue* find(const std::string& name) const;
  const std::map<std::string, ShellValue>& all() const { return values_; }

  // NAME[key].
  std::optional<ShellValue> element(const std::string& name, const std::string& key) const;

  std::optional<std::int64_t> arithmetic(const std::string& expression, int depth = 0);

  // $1, $2, ... of the script, or of a function that is called; and back.
  void push_arguments(const std::vector<ShellText>& arguments);
  void pop_arguments();
  void replace_arguments(const std::vector<ShellText>& arguments);  // as `set --`
  void shift_arguments(std::size_t by);

  const std::vector<std::string>& notes() const { return notes_; }
  // Counts letters that are read or written. InputError where they are more than any script has.
  void spend(std::size_t letters, int line);
  void add_environment(const std::map<std::string, std::string>& variables);  // of a batch job

 private:
  class Expansion;
  void write_arguments();
  void set_element(const std::string& name, const std::string& key, ShellText text,
                   const BranchPointer& branch);
  std::optional<ShellText> output(const std::string& command, int line);
  bool is_given(const std::string& name, const ShellValue& value, int line);

  const std::string& file_;
  std::map<std::string, ShellValue> values_;
  std::map<std::string, std::string> given_;
  std::vector<std::vector<ShellText>> arguments_;  // the script's, then those of functions inside each other
  bool has_arguments_ = false;                     // the script, which else may be given any
  std::vector<std::string> notes_;
  std::size_t spent_ = 0;
  int depth_ = 0;
};

bool is_shell_name(const std::string& name);
bool is_shell_assignment(const std::string& word);  // NAME=... or NAME+=...

}  // namespace rehearse
