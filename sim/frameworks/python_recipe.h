// Which scenario does a configuration in Python describe? Such files are registries of torchtitan, recipes of
// Megatron-Bridge and NeMo 2, and training scripts of OLMo-core.
#pragma once

#include <string>

#include "frameworks/imported.h"
#include "frameworks/python_settings.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

// "torchtitan", "megatron-bridge", "nemo-2", "olmo-core", or "" of another program. InputError, with advice,
// for programs that are known and not read.
std::string kind_of_python(const std::string& text, const std::string& file);

// The first argument names the function, unless the file has a single one.
Imported import_nemo_python(const std::string& text, const std::string& file, const ImportRequest& request);
// Words of NeMo 2's command line, which change a recipe that another file names (nemo_words.h).
Imported import_nemo_words(const YamlText& yaml, const std::string& file, const ImportRequest& request);
// The script as it stands, or the function that the first argument names.
Imported import_olmo_core(const std::string& text, const std::string& file, const ImportRequest& request);
Imported import_bridge_python(const std::string& text, const std::string& file, const ImportRequest& request);

// The same of settings that are read already. `layers`: of the model.
Imported import_torchtitan_settings(const PythonSettings& found, const std::string& file,
                                    const ImportRequest& request, std::int64_t layers);
Imported import_nemo_settings(PythonSettings found, const std::string& file, const ImportRequest& request);
Imported import_olmo_core_settings(PythonSettings found, const std::string& file,
                                   const ImportRequest& request);
Imported import_bridge_settings(PythonSettings found, const std::string& file, const ImportRequest& request);

// Lists open values without effect on the step, and arguments of the function that makes the recipe.
void note_on_recipe(PythonSettings& found);
// InputError for open values that shape the step, and for those that another module's function decides and no
// flag gives. `sections`: the recipe with Megatron-Bridge's names.
void require_decided_recipe(const PythonSettings& found, const Json& sections, const std::string& file,
                            const ImportRequest& request);

}  // namespace rehearse
