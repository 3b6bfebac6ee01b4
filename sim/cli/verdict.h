// What does a verb do that shows the figures of one plan, where the plan does not fit?
#pragma once

#include "result/report.h"
#include "scenario/flags.h"
#include "scenario/scenario.h"

namespace rehearse {

VerbOption allow_oom_option(bool& allow_oom);

// The exit code: 3 where the plan does not fit and may not. Such a report also says what would fit.
int judge(const ScenarioSource& source, const Scenario& scenario, bool allow_oom, Report& report);

}  // namespace rehearse
