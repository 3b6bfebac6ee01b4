// Which run does the user ask for? A scenario, checked and completed: names resolved, defaults filled in and
// reported.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/iteration.h"
#include "scenario/flags.h"
#include "scenario/inputs.h"
#include "search/order/auto_schedule.h"

namespace rehearse {

struct Scenario {
  Experiment experiment;
  std::vector<std::string> notes;                      // assumptions where the user gave no value
  std::int64_t gpus = 0;                               // requested
  bool splits_by_cost = false;                         // "auto" layers
  std::optional<ScheduleSearch> schedule_search = {};  // "auto" schedule
  std::optional<FoundSchedule> found_schedule = {};    // its result, which is the experiment's order
};

// InputError with every broken rule of the plan at once. Each violation names the flag, or the file and JSON
// pointer, that set the value.
Scenario read_scenario(const ScenarioSource& source);

// The violation of a rule on a plan's field or another pointer, naming the flag or the file that set the
// value.
Violation in_users_words(Violation violation, const ScenarioSource& source);

// Replacements for parts of a scenario.
struct Replaced {
  std::optional<Model> model;    // in place of the one that /model names
  bool without_profile = false;  // none is read: enough for the rules and for memory
  bool without_rules = false;    // the plan may break them, and "auto" layers are not split
  bool likely_layers = false;    // "auto" layers are split by cost alone: nothing is run for them
  bool without_search = false;   // seek_schedule() is still to be called for an "auto" schedule
  Inputs* inputs = nullptr;      // files that were read before
};
Scenario read_scenario(const ScenarioSource& source, const Replaced& replaced);

// run_iteration() of a scenario's experiment. InputError names the flag or the file, as read_scenario() does.
Iteration run_scenario(const ScenarioSource& source, const Experiment& experiment);

}  // namespace rehearse
