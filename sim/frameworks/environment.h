// Which environment variables of a launch file change the time or memory of a step?
#pragma once

#include <string>
#include <vector>

#include "frameworks/imported.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

struct SetVariable {
  std::string name;
  std::string value;  // "$NAME" where the file does not decide it
  int line = 0;       // 0: of the command line
};

// A map of names and values at a JSON pointer; none where there is no map.
std::vector<SetVariable> variables_at(const YamlText& yaml, const std::string& pointer);

// Whether a library of a step reads the variable: NCCL, PyTorch, Transformer Engine, the network
// (environment.json). Others belong to the script.
bool is_of_library(const std::string& name);

// Lists the variables of libraries among the file's options. One note names all variables of one effect.
void add_environment(const std::vector<SetVariable>& variables, std::vector<ImportedOption>& options,
                     std::vector<std::string>& notes);

// What the variable changes above 10 % of the answer (base/omitted_effect.h); "" where it is none of theirs.
std::string changes_by_variable(const std::string& name);

// NVTE_FLASH_ATTN=0 and NVTE_FUSED_ATTN=0 leave Transformer Engine its unfused attention (docs/envvars.rst).
bool unfuses_attention(const std::vector<SetVariable>& variables);

}  // namespace rehearse
