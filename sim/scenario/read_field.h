// What does a scenario's plan say of one field?
#pragma once

#include "base/json_reader.h"
#include "plan/fields.h"

namespace rehearse {

// Reads the field's key into `plan`; where the key is absent the plan keeps what it has. InputError for a
// value that is not of the field's type or lies outside its bounds. Layers of stages and shorthands for them
// are read_layers()'s.
void read_field(const JsonReader& json, const PlanField& field, Plan& plan);
void read_field(const JsonReader& json, std::string_view key, Plan& plan);

}  // namespace rehearse
