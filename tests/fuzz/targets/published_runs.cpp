#include "cli/published_runs.h"

#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// As `validate` does, to the plan of every row.
const Target kPublishedRuns("published_runs", [](const std::string& input) {
  static Inputs inputs;
  for (const PublishedRun& run : read_published_runs(file_of(input))) {
    if (!run.missing.empty()) continue;
    Replaced replaced;
    replaced.model = run.model;
    replaced.inputs = &inputs;
    read_scenario(run.source, replaced);
  }
});

}  // namespace

}  // namespace rehearse::fuzz
