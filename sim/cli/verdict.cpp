#include "cli/verdict.h"

#include <CLI/CLI.hpp>

#include "cli/verbs.h"
#include "cli/way_to_fit.h"

namespace rehearse {

void add_allow_oom_flag(CLI::App& verb, bool& allow_oom) {
  verb.add_flag("--allow-oom", allow_oom, "exit with 0 although the plan does not fit in memory, not with 3");
}

int judge(const ScenarioSource& source, const Scenario& scenario, bool allow_oom, Report& report) {
  if (memory_verdict(report).fits()) return kDone;
  report.facts.way_to_fit = way_to_fit(source, scenario);
  return allow_oom ? kDone : kDoesNotFit;
}

}  // namespace rehearse
