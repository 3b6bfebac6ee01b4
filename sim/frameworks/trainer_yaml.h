// What scenario do the YAML files of nanotron, and of programs around Hugging Face's Trainer, describe?
#pragma once

#include <string>

#include "frameworks/imported.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

bool is_nanotron(const Json& yaml);
Imported import_nanotron(const YamlText& yaml, const std::string& file, const ImportRequest& request);

// LLaMA-Factory, axolotl and TRL.
bool is_trainer(const Json& yaml);
Imported import_trainer(const YamlText& yaml, const std::string& file, const ImportRequest& request);

// The program that a file of another kind belongs to, where it is known and not read; "" elsewhere.
std::string unread_program(const Json& yaml);

}  // namespace rehearse
