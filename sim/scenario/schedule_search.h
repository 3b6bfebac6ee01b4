// How does `--schedule auto` search, for how long, and within which memory?
#pragma once

#include <string>

#include "scenario/scenario.h"

namespace rehearse {

bool is_auto_schedule(const std::string& schedule);

// Whether the plan of a scenario requests it.
bool seeks_schedule(const Json& scenario);

// Reads "schedule_memory" and "schedule_seconds" of the scenario into its search. Without a search, as in
// sweep rows that name a schedule, a note says that they are ignored.
void read_schedule_search(const JsonReader& top, Scenario& scenario);

// Puts the best order found into the experiment. Ctrl-C ends the search with the best so far. InputError
// where no order fits a memory that the user gave.
void seek_schedule(Scenario& scenario);

// "at most 1.3 % above any schedule of these stages", with the best named schedule. One line.
std::string in_words(const FoundSchedule& found);
Json to_json(const FoundSchedule& found, const ScheduleSearch& search);

}  // namespace rehearse
