// A drawn run as `check` takes it: read, judged, prepared, and walked by both engines.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "drawn.h"
#include "run/iteration.h"
#include "scenario/scenario.h"

namespace rehearse::properties {

struct Run {
  Drawn drawn;
  ScenarioSource source;
  Experiment experiment;
  Preparation ready;
  Loads loads;         // of the first iteration, with its jitter
  Timeline reference;  // the longest path
};

// Null where `check` refuses it; the rule is counted (coverage.h). Any other outcome is a failure.
std::unique_ptr<const Run> legal_run(const Drawn& drawn);

// The same, and rapidcheck draws another one where there is none.
std::unique_ptr<const Run> legal_run();

// Reads a scenario as a user's, whose model is config.json. `json` names the model, or the drawn one is
// meant.
ScenarioSource source_of(const Drawn& drawn);
Experiment read(const ScenarioSource& source);

Preparation prepared(const Experiment& experiment, Loads& first_loads);

// The result of `--engine reference`: it folds ranks that differ, and they share NICs by their ports.
double longest_path_s(Experiment experiment);

// By SimGrid, in a child process. Nothing when it does not end, or ends otherwise than well.
std::optional<Timeline> simulated(const Schedule& schedule, const Tasks& tasks, const Loads& loads);
std::optional<Timeline> simulated(const Run& run);

}  // namespace rehearse::properties
