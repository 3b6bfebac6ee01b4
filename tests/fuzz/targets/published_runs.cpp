#include "cli/published_runs.h"

#include "fuzz/target.h"

// As `validate` does, to the plan of every row.
void rehearse::fuzz::read(const std::string& input) {
  static Inputs inputs;
  for (const PublishedRun& run : read_published_runs(file_of(input))) {
    if (!run.missing.empty()) continue;
    Replaced replaced;
    replaced.model = run.model;
    replaced.inputs = &inputs;
    read_scenario(run.source, replaced);
  }
}
