// Which values do the variables of a shell script hold, and to which words does a word expand?
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frameworks/imported.h"
#include "frameworks/shell_tokens.h"

namespace rehearse {

// One element, or those of an array.
using ShellValue = std::vector<ShellText>;

// The variables that a subshell has for itself.
struct ShellScope {
  struct Saved {  // of a variable that a function has for its own
    std::string name;
    std::optional<ShellValue> value;
    std::optional<std::vector<std::string>> keys;
    bool is_map = false, is_integer = false;
    std::optional<std::string> reference;
    BranchPointer branch;  // of the command that makes it the function's own
  };
  std::map<std::string, ShellValue> values;
  std::map<std::string, std::vector<std::string>> keys;  // of maps, and of lists with gaps
  std::set<std::string> maps, integers, exported;        // declare -A, -i, -x
  std::set<std::string> altered;                  // whose assignments give open values: declare -l, -u, -c
  std::map<std::string, std::string> references;  // declare -n
  std::set<std::string> constants;                // readonly
  BranchPointer lost;  // where a limit ended the reading: a variable that is not set may be set there
  std::vector<std::vector<ShellText>> arguments;  // the script's, then those of functions inside each other
  std::vector<std::vector<Saved>> locals;         // the same for variables
  bool has_arguments = false;                     // the script, which else may be given any
  bool exports_all = false;                       // set -a
};

class ShellValues {
 public:
  ShellValues(const std::string& file, const ShellInputs& inputs);

  // The words to which a word of the script expands. $NAME that the script does not set stays as written.
  std::vector<ShellText> words(const ShellToken& word, const BranchPointer& branch);
  // The same as one word, with or without its quotes taken as such.
  ShellText whole(const std::string& word, int line, const BranchPointer& branch, bool in_quotes = false);
  // The same as the value of NAME=word.
  ShellText assigned(const std::string& word, int line, const BranchPointer& branch);
  // The same as a pattern: '\' stands before special letters that quotes hold.
  ShellText pattern(const std::string& word, int line, bool is_regex);

  // NAME=value, NAME+=value, NAME=(...)
  void assign(const ShellToken& word, const BranchPointer& branch);
  // NAME=value or NAME+=value of a text that is expanded.
  void assign_text(const std::string& name, bool adds, ShellText text, const BranchPointer& branch, int line);
  // In an undecided branch, the variable has either its old or its new value.
  void set(const std::string& name, ShellValue value, const BranchPointer& branch);
  // The text does not decide the value that `command` gives to the variable.
  void undecide(const std::string& name, int line, const std::string& command);
  void unset(const std::string& name, const BranchPointer& branch);  // NAME or NAME[key]
  // The reading ends here for a while: all variables are open.
  void lose(int line, const std::string& reason);
  std::size_t count_open() const;  // variables that are not decided
  bool is_constant(const std::string& name) const { return scope_.constants.contains(resolved(name)); }
  const ShellValue* find(const std::string& name) const;
  const std::map<std::string, ShellValue>& all() const { return scope_.values; }

  // As `declare` with these option letters; inside a function, the variable becomes its own.
  void declare(const std::string& name, const std::string& letters, bool is_local,
               const BranchPointer& branch);

  void make_constant(const std::string& name, const BranchPointer& branch);  // readonly

  std::vector<std::string> keys_of(const std::string& name) const;  // ${!NAME[@]}
  // NAME[key].
  std::optional<ShellValue> element(const std::string& name, const std::string& key) const;

  // Assignments inside the expression take effect.
  std::optional<std::int64_t> arithmetic(const std::string& expression, const BranchPointer& branch,
                                         int line);

  // $1, $2, ... of the script, or of a function that is called; and back.
  void push_arguments(const std::vector<ShellText>& arguments);
  void pop_arguments();
  void replace_arguments(const std::vector<ShellText>& arguments, const BranchPointer& branch);  // `set --`
  void shift_arguments(std::size_t by, const BranchPointer& branch);
  // None where nobody gave arguments to the script.
  const std::vector<ShellText>* arguments() const;
  bool is_in_function() const { return !scope_.locals.empty(); }

  // Letters that separate words.
  std::optional<std::string> separators() const;  // none where they are open

  const ShellScope& scope() const { return scope_; }
  void restore(ShellScope scope) { scope_ = std::move(scope); }
  void export_all(bool all) { scope_.exports_all = all; }
  void refer(const std::string& name, const std::string& to) { scope_.references[name] = to; }
  // Variables and arguments of another shell.
  void leave_exported(const std::vector<ShellText>& arguments);

  // Computes $(...), where the runner can.
  using Output = std::function<std::optional<ShellText>(const std::string& command, int line)>;
  void set_output(Output output) { output_ = std::move(output); }

  const std::vector<std::string>& notes() const { return notes_; }
  // Counts letters that are read or written. InputError where they are more than any script has.
  void spend(std::size_t letters, int line);
  void add_environment(const std::map<std::string, std::string>& variables);  // of a batch job

 private:
  class Expansion;
  void write_arguments();
  void restore(const ShellScope::Saved& saved);
  void store(const std::string& name, ShellValue value);
  const std::string& resolved(const std::string& name) const;
  std::optional<std::string> key_of(const std::string& name, const std::string& raw, int line,
                                    const BranchPointer& branch);
  struct Item {
    std::optional<std::string> key;
    ShellText text;
  };
  std::vector<Item> items_of(const std::string& name, const std::string& inside, int line,
                             const BranchPointer& branch);
  void set_list(const std::string& name, std::vector<Item> items, bool adds, int line,
                const BranchPointer& branch);
  void set_element(const std::string& name, const std::string& key, bool adds, ShellText text,
                   const BranchPointer& branch);
  std::optional<std::size_t> place_of(const std::string& name, const std::string& key) const;
  bool is_known_place(const std::string& name, std::size_t place) const;
  bool is_given(const std::string& name, const ShellValue& value, int line);
  std::optional<std::int64_t> number_of(const std::string& name, int depth);

  const std::string& file_;
  ShellScope scope_;
  std::map<std::string, std::string> given_;
  Output output_;
  std::vector<std::string> notes_;
  std::size_t spent_ = 0;
  int depth_ = 0;
};

bool is_shell_name(const std::string& name);
bool is_shell_assignment(const std::string& word);  // NAME=... or NAME+=...

}  // namespace rehearse
