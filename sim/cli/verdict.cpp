#include "cli/verdict.h"

#include "base/say.h"
#include "cli/verbs.h"
#include "cli/way_to_fit.h"
#include "scenario/read_conditions.h"

namespace rehearse {

VerbOption allow_oom_option(bool& allow_oom) {
  return {.names = {"--allow-oom"},
          .target = &allow_oom,
          .help = "exit with 0, not 3, where the plan does not fit in memory",
          .group = HelpGroup::memory};
}

int judge(const ScenarioSource& source, const Scenario& scenario, bool allow_oom, Report& report) {
  const MemoryVerdict verdict = memory_verdict(report);
  if (!verdict.is_decided()) return allow_oom ? kDone : kInvalidInput;
  if (verdict.fits()) return kDone;
  report.facts.way_to_fit = way_to_fit(source, scenario);
  return allow_oom ? kDone : kDoesNotFit;
}

void say_omitted(const Report& report) {
  if (const std::string line = in_words(report.facts.omitted_effects); !line.empty()) say("{}\n", line);
}

void say_omitted(const ScenarioSource& source) {
  const auto effects = read_omitted_effects(JsonReader(source.json, source.file));
  if (!effects.empty()) say(stderr, "rehearse: {}\n", in_words(effects));
}

}  // namespace rehearse
