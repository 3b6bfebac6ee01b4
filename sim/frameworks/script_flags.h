// Which flags does the training command of a script, or a file of arguments, hold?
#pragma once

#include <string>
#include <vector>

#include "frameworks/environment.h"
#include "frameworks/imported.h"

namespace rehearse {

struct ShellWord;

struct ScriptFlag {
  std::string name;  // "--num-layers"
  std::vector<std::string> values;
  int line = 0;             // from 1
  std::string condition{};  // "if [ $AC = full ] of line 2": undecided condition of the flag
  std::string decides{};    // the command that decides it
  std::string source{};     // the key of the file, where that is not the name
  bool is_default = false;  // no option of the file
};

struct ScriptFlags {
  std::vector<ScriptFlag> flags;
  std::vector<ImportedOption> others;          // keys of the file that are no options of Megatron-LM
  std::vector<std::string> notes;              // assumptions, and ignored words and lines
  std::map<std::string, std::string> written;  // text of files that a script fills, by name without folder
};

// Flags of the one command that trains, its launcher's nodes and processes included. Lines that begin with a
// flag are a file of arguments. A text of assignments alone holds the flags of its variables. Flags in
// comments, here-documents and other commands do not count. $NAME stays as written where the text does not
// set it. InputError where two commands train, or where one stands in an undecided branch.
ScriptFlags script_flags(const std::string& text, const std::string& file, const ShellInputs& inputs = {});

// Lists the environment variables of a run, and adds the option that follows from them.
void add_environment(const std::vector<SetVariable>& variables, ScriptFlags& found);

// The command that hands in the variables of a text: "rehearse import train.sh TP=... 1".
std::string words_that_decide(const std::string& text, const std::string& file);

// A note on a word of the command, such as $MORE, whose value the text does not set.
std::string note_on_unknown(const ShellWord& word, const std::string& file);

}  // namespace rehearse
