// Which plan do the YAML files of llm-foundry, MaxText and verl describe?
#pragma once

#include "frameworks/environment.h"
#include "frameworks/imported.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

// Pretraining and finetuning with Composer and FSDP.
bool is_llm_foundry(const Json& yaml);
Imported import_llm_foundry(const YamlText& yaml, const std::string& file, const ImportRequest& request);

// A file for TPUs is read as a plan for GPUs, with a note.
bool is_maxtext(const Json& yaml);
Imported import_maxtext(const YamlText& yaml, const std::string& file, const ImportRequest& request);

// The update of the actor, or supervised finetuning. Generation and scoring of samples are not counted.
bool is_verl(const Json& yaml);
Imported import_verl(const YamlText& yaml, const std::string& file, const ImportRequest& request);

// A script whose command starts a trainer of verl, with settings as words "a.b=c".
bool starts_verl(const std::string& script);
struct VerlScript {
  YamlText settings;
  std::vector<SetVariable> variables;
  std::vector<std::string> notes;
};
VerlScript verl_script(const std::string& script, const std::string& file, const ShellInputs& inputs);

}  // namespace rehearse
