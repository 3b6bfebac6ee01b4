// Which of the broken rules are causes, and which changes make the plan legal?
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/rules/broken_rule.h"

namespace rehearse {

// The rules that the plan breaks once these settings are made and what follows from them has followed;
// nothing where they cannot be made.
using Probe = std::function<std::optional<std::vector<BrokenRule>>(const Settings& settings)>;

// How the user knows a field: "global_batch" or "gbs".
using FieldName = std::function<std::string(const std::string& field)>;

// The fewest broken rules whose remedies, one after the other, leave a legal plan: the one whose remedy mends
// most comes first. Rules that are mended by the remedy of another are its consequences and are left out.
// Each "nearest" value was tried: alone it makes the plan legal, or "(for this rule)" says that it only
// satisfies the rule it stands beside. Where nothing was found "nearest" is empty.
std::vector<Violation> root_causes(const std::vector<BrokenRule>& broken, const Probe& probe,
                                   const FieldName& name);

// Without a probe: all rules, each with the values that satisfy it.
std::vector<Violation> as_violations(const std::vector<BrokenRule>& broken);

}  // namespace rehearse
