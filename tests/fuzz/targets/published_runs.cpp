#include "cli/published_runs.h"

#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// As `validate` does, to the plan of every row.
const Target kPublishedRuns("published_runs", [](const std::string& input) {
  static Inputs inputs;
  for (const PublishedRun& run : read_published_runs(file_of(input))) {
    for (const Candidate& candidate : run.candidates) {
      Replaced replaced;
      replaced.model = candidate.model;
      replaced.inputs = &inputs;
      read_scenario(candidate.source, replaced);
    }
  }
});

}  // namespace

}  // namespace rehearse::fuzz
