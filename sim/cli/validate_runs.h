// How far off is the simulator for training runs that others have measured?
#pragma once

#include <string>
#include <vector>

#include "cli/published_runs.h"
#include "result/error_summary.h"

namespace rehearse {

// What was predicted for one run. Errors are predicted / measured - 1.
struct RunPrediction {
  PublishedRun run;
  std::optional<double> seconds;       // of an iteration
  std::optional<double> memory_bytes;  // of the heaviest rank; where the source printed a memory
  std::string skipped;                 // why there are no seconds; "" when there are
};

// Never throws for a run that cannot be predicted: that is said in `skipped`.
RunPrediction predict(const PublishedRun& run);

std::string write_predictions(const std::vector<RunPrediction>& predictions);       // a table
std::string write_predictions_json(const std::vector<RunPrediction>& predictions);  // one object

}  // namespace rehearse
