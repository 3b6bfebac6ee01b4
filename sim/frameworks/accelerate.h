// Which scenario does a configuration of Hugging Face Accelerate describe?
#pragma once

#include <string>

#include "frameworks/imported.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

// Whether the file is such a configuration: it names a distributed type, or settings of FSDP.
bool is_accelerate(const Json& yaml);

// Reads FSDP 1 and 2, DeepSpeed, Megatron-LM and plain data parallelism.
Imported import_accelerate(const YamlText& yaml, const std::string& file, const ImportRequest& request);

}  // namespace rehearse
