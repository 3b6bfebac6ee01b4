// How accurate are the predictions, and how was that measured? Two pages in Markdown.
#pragma once

#include <string>
#include <vector>

#include "validate/predict_runs.h"

namespace rehearse {

// The errors by class and by source, how independent they are, and each source's settings. `engine` predicted
// the times. `families` and `mechanisms`: calibrate/data/runs/families.json and mechanisms.json.
std::string write_accuracy_page(const std::vector<RunPrediction>& predictions, Engine engine,
                                const Json& families, const Json& mechanisms);

// The tables behind it: every mechanism with the runs that led to it, and every run.
std::string write_accuracy_evidence(const std::vector<RunPrediction>& predictions, const Json& mechanisms);

}  // namespace rehearse
