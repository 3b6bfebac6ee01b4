// Which flags, with which values, does a shell script or a file of arguments hold?
#pragma once

#include <string>
#include <vector>

namespace rehearse {

struct ScriptFlag {
  std::string name;  // "--num-layers"
  std::vector<std::string> values;
  int line = 0;  // from 1
};

// Every word that begins with two dashes, wherever it stands, with the words after it on its line. Comments
// are left out; $NAME, ${NAME}, ${NAME:-default} and products in $((...)) are followed where the text sets
// them; what it does not set stays as it stands. InputError for a text that is longer, with its variables
// written out, than any script.
std::vector<ScriptFlag> script_flags(const std::string& text, const std::string& file);

}  // namespace rehearse
