// Which schedules and frameworks can a plan name, and what is each in one line?
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace rehearse {

struct KnownSchedule {
  ScheduleName name;
  std::vector<std::string> aliases;  // that other programs and papers have, in small letters
  std::string vpp;                   // model chunks of a rank that it runs: "1", "2", ">= 1"
  std::string needs;                 // of the plan besides
  std::string paper;
};
// In the order of kScheduleNames.
const std::vector<KnownSchedule>& known_schedules();

struct KnownFramework {
  Framework name;
  std::string what;
};
const std::vector<KnownFramework>& known_frameworks();

}  // namespace rehearse
