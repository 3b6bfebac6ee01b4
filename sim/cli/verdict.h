// What does a verb with the figures of one plan do where the plan does not fit?
#pragma once

#include "cli/verb.h"
#include "result/report.h"
#include "scenario/flags.h"
#include "scenario/scenario.h"

namespace rehearse {

VerbOption allow_oom_option(bool& allow_oom);

// The exit code: 3 where the plan does not fit and `allow_oom` is false. Such a report also says what would
// fit. 2 where an option that is not counted decides whether it fits.
int judge(const ScenarioSource& source, const Scenario& scenario, bool allow_oom, Report& report);

// The first line of the answer, where options that are not counted can change it by more than 10 %.
void say_omitted(const Report& report);
void say_omitted(const ScenarioSource& source);  // on stderr, of verbs that print data

}  // namespace rehearse
