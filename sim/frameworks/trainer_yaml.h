// Which scenario do the YAML files of nanotron, and of programs around Hugging Face's Trainer, describe?
#pragma once

#include <string>

#include "frameworks/imported.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

bool is_nanotron(const Json& yaml);
Imported import_nanotron(const YamlText& yaml, const std::string& file, const ImportRequest& request);

// Files of LLaMA-Factory, axolotl and TRL.
bool is_trainer(const Json& yaml);
Imported import_trainer(const YamlText& yaml, const std::string& file, const ImportRequest& request);

// The known but unsupported program to which the file belongs; "" elsewhere.
std::string unread_program(const Json& yaml);

}  // namespace rehearse
