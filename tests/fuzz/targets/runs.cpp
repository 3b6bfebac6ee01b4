#include "validate/runs.h"

#include "fuzz/target.h"
#include "scenario/scenario.h"

namespace rehearse::fuzz {

namespace {

// Like `validate`, up to the plan of every run and of its stated part.
const Target kRuns("runs", [](const std::string& input) {
  constexpr int kMaxReads = 5000;  // changed clusters are kept, and would fill the memory
  static std::optional<Inputs> inputs;
  static int reads = 0;
  if (reads++ % kMaxReads == 0) inputs.emplace();
  const auto read = [](const Json& scenario, const std::string& place, bool only_words) {
    Replaced replaced;
    replaced.inputs = &*inputs;
    replaced.without_profile = replaced.without_rules = only_words;
    read_scenario(ScenarioSource{place, scenario, {}}, replaced);
  };
  const auto check = [&](const Json& scenario, const std::string& place) { read(scenario, place, true); };
  for (const PublishedRun& run : read_runs(file_of(input), check)) {
    for (const Json& candidate : run.candidates) read(candidate, run.place, false);
    if (run.as_stated) read(*run.as_stated, run.place, false);
  }
});

}  // namespace

}  // namespace rehearse::fuzz
