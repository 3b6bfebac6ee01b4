#include "cli/verdict.h"

#include <CLI/CLI.hpp>

#include "cli/grouped_help.h"
#include "cli/verbs.h"
#include "cli/way_to_fit.h"

namespace rehearse {

void add_allow_oom_flag(CLI::App& verb, bool& allow_oom) {
  put_in_group(
      *verb.add_flag("--allow-oom", allow_oom, "exit with 0, not 3, where the plan does not fit in memory"),
      HelpGroup::memory, true);
}

int judge(const ScenarioSource& source, const Scenario& scenario, bool allow_oom, Report& report) {
  if (memory_verdict(report).fits()) return kDone;
  report.facts.way_to_fit = way_to_fit(source, scenario);
  return allow_oom ? kDone : kDoesNotFit;
}

}  // namespace rehearse
