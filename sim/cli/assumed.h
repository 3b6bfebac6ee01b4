// Which defaults of the program are not those of the framework, and what do they do to the step?
#pragma once

#include <string>
#include <vector>

#include "scenario/scenario.h"

namespace rehearse {

// A value that no flag and no file said.
struct AssumedDefault {
  std::string flag;   // "--fused-cross-entropy"
  std::string value;  // as the plan has it
  std::string framework_default;
  double effect = 0;  // of the framework's own on the step, over what is reported: 0.12 is 12 % more time
};

// Those whose effect exceeds 2 %, each by itself, without contention of links.
std::vector<AssumedDefault> assumed_defaults(const ScenarioSource& source, const Scenario& scenario);

// For the summary, one a line; and for JSON beside a step of `step_time_s`.
std::vector<std::string> say_assumed(const std::vector<AssumedDefault>& assumed, Framework framework);
Json assumed_json(const std::vector<AssumedDefault>& assumed, double step_time_s);

}  // namespace rehearse
