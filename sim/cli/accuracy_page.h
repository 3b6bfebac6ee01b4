// What should a reader know of the predictions before trusting one? Two pages in Markdown.
#pragma once

#include <string>
#include <vector>

#include "cli/validate_runs.h"

namespace rehearse {

// The errors by class and by source, how independent they are, and each source's settings. `engine`: what
// predicted the times. `practices` and `mechanisms`: calibrate/data/runs/practices.json and mechanisms.json.
std::string write_accuracy_page(const std::vector<RunPrediction>& predictions, Engine engine,
                                const Json& practices, const Json& mechanisms);

// The tables behind it: every mechanism with the runs that led to it, and every run.
std::string write_accuracy_evidence(const std::vector<RunPrediction>& predictions, const Json& mechanisms);

}  // namespace rehearse
