// Which plan does the configuration of an experiment of OLMo-core state?
#pragma once

#include <set>
#include <string>

#include "frameworks/imported.h"
#include "frameworks/plan_yaml.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

// `experiment`: with the names of calls; `yaml`: the same without, and its lines.
Imported olmo_core_plan(const Json& experiment, const YamlText& yaml, const std::string& file,
                        const ImportRequest& request);

// InputError for settings that a branch decides, or a function of another file.
void require_known_of_olmo_core(const Json& experiment, const std::string& file, PlanYaml& from);

// Settings that change the cost and are not counted.
void ignore_of_olmo_core(PlanYaml& from);

// What leaves time and memory of a step as they are.
std::set<std::string> free_of_olmo_core();

}  // namespace rehearse
