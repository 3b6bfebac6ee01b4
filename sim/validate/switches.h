// Which switches does a published run's source state, and where do the others come from?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

// A key of a scenario's plan, of a written-out model, or ("" as part) of the scenario itself.
struct Switch {
  std::string part, key;
  std::string pointer() const { return (part.empty() ? "" : "/" + part) + "/" + key; }
};

// All but schema, title and comments.
std::vector<Switch> switches_of(const Json& scenario);

// The switch at a pointer such as "/plan/tp", whether the scenario has it or not; null for other text.
std::optional<Switch> switch_at(const std::string& pointer);

// `stated`: pointers to switches or to a whole plan or model; null states all switches that `why` does not
// name. `why`: by pointer, the source of a switch. InputError (without a file) for a pointer to no switch,
// and for a switch that is neither stated nor has a source.
void require_sources(const Json& scenario, const Json& stated, const Json& why);

// The scenario without the switches that are not stated.
Json stated_part(const Json& scenario, const Json& stated, const Json& why);

}  // namespace rehearse
