// Which scenario does a configuration that stands in Python describe: a registry of torchtitan, a recipe of
// Megatron-Bridge or NeMo 2, a training script of OLMo-core?
#pragma once

#include <string>

#include "frameworks/imported.h"

namespace rehearse {

// "torchtitan", "megatron-bridge", "nemo-2", "olmo-core", or "" of another. InputError, with the way on, for
// programs that are known and not read.
std::string kind_of_python(const std::string& text, const std::string& file);

// The first argument names the function, unless the file has a single one. `layers`: of the model.
Imported import_torchtitan_python(const std::string& text, const std::string& file,
                                  const ImportRequest& request, std::int64_t layers);
Imported import_nemo_python(const std::string& text, const std::string& file, const ImportRequest& request);
// The script as it stands, or the function that the first argument names.
Imported import_olmo_core(const std::string& text, const std::string& file, const ImportRequest& request);
Imported import_bridge_python(const std::string& text, const std::string& file, const ImportRequest& request);

}  // namespace rehearse
