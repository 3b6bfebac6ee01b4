#include "cli/verdict.h"

#include "cli/verbs.h"
#include "cli/way_to_fit.h"

namespace rehearse {

VerbOption allow_oom_option(bool& allow_oom) {
  return {.names = {"--allow-oom"},
          .target = &allow_oom,
          .help = "exit with 0, not 3, where the plan does not fit in memory",
          .group = HelpGroup::memory};
}

int judge(const ScenarioSource& source, const Scenario& scenario, bool allow_oom, Report& report) {
  if (memory_verdict(report).fits()) return kDone;
  report.facts.way_to_fit = way_to_fit(source, scenario);
  return allow_oom ? kDone : kDoesNotFit;
}

}  // namespace rehearse
