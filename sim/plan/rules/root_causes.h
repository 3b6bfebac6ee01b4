// Which of the broken rules are causes, and which changes make the plan legal?
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/rules/broken_rule.h"

namespace rehearse {

// The rules that the plan breaks after these settings and their consequences. Nothing where the settings
// cannot be made.
using Probe = std::function<std::optional<std::vector<BrokenRule>>(const Settings& settings)>;

// The user's name of a field: "global_batch" or "gbs".
using FieldName = std::function<std::string(const std::string& field)>;

// The fewest broken rules whose remedies, one after the other, leave a legal plan. The one whose remedy
// repairs most rules comes first. Rules that another rule's remedy repairs are consequences and are omitted.
//
// Each "nearest" value was tried. Alone it makes the plan legal, or "(for this rule)" says that it satisfies
// only its own rule. "nearest" is empty where nothing was found.
std::vector<Violation> root_causes(const std::vector<BrokenRule>& broken, const Probe& probe,
                                   const FieldName& name);

// Without a probe: all rules, each with values that satisfy it.
std::vector<Violation> as_violations(const std::vector<BrokenRule>& broken);

}  // namespace rehearse
