// Which defaults of the program differ from the framework's, and how do they change the step time?
#pragma once

#include <string>
#include <vector>

#include "scenario/scenario.h"

namespace rehearse {

// A value that no flag and no file set.
struct AssumedDefault {
  std::string flag;   // "--fused-cross-entropy"
  std::string value;  // as the plan has it
  std::string framework_default;
  double effect = 0;  // relative change of the step with the framework's default: 0.12 is 12 % more time
};

// Defaults with an effect above 2 %, each changed alone, without contention of links.
std::vector<AssumedDefault> assumed_defaults(const ScenarioSource& source, const Scenario& scenario);

// Lines for the summary; and JSON relative to a step of `step_time_s`.
std::vector<std::string> say_assumed(const std::vector<AssumedDefault>& assumed, Framework framework);
Json assumed_json(const std::vector<AssumedDefault>& assumed, double step_time_s);

}  // namespace rehearse
