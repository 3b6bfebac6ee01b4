// What should a reader know of the predictions before trusting one? A page in Markdown.
#pragma once

#include <string>
#include <vector>

#include "cli/validate_runs.h"

namespace rehearse {

// `engine`: what predicted the times. `practices` and `mechanisms`: calibrate/data/runs/practices.json and
// mechanisms.json.
std::string write_accuracy_page(const std::vector<RunPrediction>& predictions, Engine engine,
                                const Json& practices, const Json& mechanisms);

}  // namespace rehearse
