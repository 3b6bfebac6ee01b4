// Which options of Megatron-LM set an argument of its Python code to a value?
#pragma once

#include <set>
#include <string>
#include <vector>

#include "frameworks/script_flags.h"

namespace rehearse {

struct NamedArgument {
  std::string name;                 // "sequence_parallel", "num_experts"
  std::vector<std::string> values;  // as Python or YAML shows them; empty: no value
  int line = 0;
  std::string source;       // the key of the file, where that is another
  bool is_default = false;  // the program's own: no option of the file
};

// Adds the options that set the argument to its values. An unknown argument becomes an unknown option. None,
// null and an empty list set nothing. False adds the opposite switch, where there is one. An argument that
// sets nothing is listed all the same.
void add_named_argument(const NamedArgument& argument, ScriptFlags& found);

bool is_true_word(const std::string& value);
bool is_false_word(const std::string& value);

// Whether the argument is a number or a switch, for which a list or a map is a violation.
bool takes_one_value(const std::string& argument);

// InputError for values other than true, false and null of words that are no options of Megatron-LM.
void require_switches(const std::vector<NamedArgument>& arguments, const std::set<std::string>& switches,
                      const std::string& file);

// Two keys of a file without sections of its own that set one argument: the last of them counts.
void note_conflicts(const std::vector<NamedArgument>& arguments, std::vector<std::string>& notes);

}  // namespace rehearse
