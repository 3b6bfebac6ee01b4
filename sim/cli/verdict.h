// What does a verb with the figures of one plan do where the plan does not fit?
#pragma once

#include "result/report.h"
#include "scenario/flags.h"
#include "scenario/scenario.h"

namespace rehearse {

VerbOption allow_oom_option(bool& allow_oom);

// The exit code: 3 where the plan does not fit and `allow_oom` is false. Such a report also says what would
// fit.
int judge(const ScenarioSource& source, const Scenario& scenario, bool allow_oom, Report& report);

}  // namespace rehearse
