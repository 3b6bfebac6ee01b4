// Which options of Megatron-LM set an argument of its Python code to a value?
#pragma once

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

}  // namespace rehearse
