// Which plan does the configuration of an experiment of OLMo-core state?
#pragma once

#include <set>
#include <string>

#include "frameworks/imported.h"
#include "frameworks/plan_yaml.h"
#include "frameworks/python_settings.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

// `experiment` has the names of calls. `yaml` is the same configuration without them, and its lines.
Imported olmo_core_plan(const PythonSettings& experiment, const YamlText& yaml, const std::string& file,
                        const ImportRequest& request);

// InputError for settings that a branch or a function of another file decides. `words`: the file, and the
// function that the user names.
void require_known_of_olmo_core(const PythonSettings& experiment, const std::string& words, PlanYaml& from);

// "hsdp" of "DataParallelType.hsdp": OLMo-core's enumerations are words.
std::string olmo_core_word(const Json& value);

// Settings that change the cost and are not counted.
void ignore_of_olmo_core(PlanYaml& from);

// Settings without effect on the time and memory of a step.
std::set<std::string> free_of_olmo_core();

}  // namespace rehearse
