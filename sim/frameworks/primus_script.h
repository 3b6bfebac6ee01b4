// Which experiment of Primus does a shell script start, and which of its settings do the script's words
// change?
#pragma once

#include <string>
#include <vector>

#include "frameworks/environment.h"
#include "frameworks/imported.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

// Whether a command of the script is one of Primus's launchers: run_pretrain.sh and those around it, or
// primus-cli.
bool starts_primus(const std::string& script, const std::string& file);

struct PrimusScript {
  std::string experiment;  // the file that the launcher reads, as the script names it
  YamlText settings;       // of that file, with the script's words in their places
  std::vector<SetVariable> variables;
  std::vector<std::string> notes;
  ShellInputs shell;  // with the variables of the script, which the file may name
};

// InputError where the script names no file, or one that --source does not give.
PrimusScript primus_script(const std::string& script, const std::string& file, const ShellInputs& inputs);

}  // namespace rehearse
