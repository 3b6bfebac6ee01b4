// Which keys of LLaMA-Factory, axolotl and TRL change nothing, and which are ignored with their effect?
#pragma once

#include <set>
#include <span>
#include <string>

#include "frameworks/plan_yaml.h"

namespace rehearse {

// Effects that the reader states too.
inline constexpr const char* kOneModel = "one pass of one model is counted";
inline constexpr const char* kAllTrained = "all parameters are counted as trained";
inline constexpr const char* kFewTrained = "less memory, less time";

std::span<const CountedKey> ignored_of_trainers();
const std::set<std::string>& free_of_trainers();

}  // namespace rehearse
