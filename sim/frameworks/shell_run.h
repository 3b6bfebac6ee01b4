// Which commands does a shell script run, with which words? Nothing is executed: the text is evaluated as far
// as it decides itself.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frameworks/imported.h"
#include "frameworks/shell_tokens.h"
#include "frameworks/shell_values.h"

namespace rehearse {

struct ShellWord {
  std::string text;
  int line = 0;
  BranchPointer branch;
  bool is_open = false;  // the text does not decide it: "$NAME", "*.json"
};

struct ShellCommand {
  std::vector<ShellWord> words;
  int line = 0;
  BranchPointer branch;                // it runs only where this is taken
  std::vector<ShellWord> environment;  // "NAME=value" before it
  std::vector<ShellWord> launcher;     // "srun -N 2", which starts the shell that runs it
};

struct ShellRun {
  std::vector<ShellCommand> commands;
  std::map<std::string, ShellValue> variables;  // as they are at the end
  int exit_line = 0;                            // where the script ends itself; 0: nowhere
  std::string exit_condition;                   // of the branch that ends it
  std::string job;                              // the batch job that the script writes and submits
  std::map<std::string, std::string> written;   // here-documents, by the file that each fills
  std::vector<std::string> notes;  // assignments that give way to words handed in, files not read
};

// Follows assignments, arrays, defaults, sums, if, case, loops, functions, eval and sh -c. A condition that
// compares values of the text decides its branch. Otherwise the commands and values of every branch are
// marked with the branch. A here-document that becomes a file is run where the script runs or submits the
// file. InputError for an unclosed quote, bracket or block, and for a text that becomes
// longer than any script. Words of `inputs` win over assignments of the text.
ShellRun shell_run(const std::string& text, const std::string& file, const ShellInputs& inputs = {});

}  // namespace rehearse
