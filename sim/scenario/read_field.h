// How is one field of a scenario's plan read?
#pragma once

#include "base/json_reader.h"
#include "plan/fields.h"

namespace rehearse {

// Reads the field's key into `plan`; an absent key leaves the plan unchanged. InputError for a value that is
// not of the field's type or lies outside its bounds. read_layers() reads layers of stages and their
// shorthands.
void read_field(const JsonReader& json, const PlanField& field, Plan& plan);
void read_field(const JsonReader& json, std::string_view key, Plan& plan);

}  // namespace rehearse
