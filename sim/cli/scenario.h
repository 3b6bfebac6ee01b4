// What does the user ask for? A scenario, checked and completed: names resolved, defaults taken and said.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "run/iteration.h"

namespace rehearse {

struct Scenario {
  Experiment experiment;
  std::vector<std::string> notes;  // what was not said and therefore assumed
};

// InputError with every broken rule of the plan at once; each violation names the flag or the file and JSON
// pointer that set the value.
Scenario read_scenario(const ScenarioSource& source);

}  // namespace rehearse
