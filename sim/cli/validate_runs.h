// How far off is the simulator for training runs that others have measured?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/published_runs.h"
#include "result/error_summary.h"

namespace rehearse {

// What was predicted for one run. Errors are predicted / measured - 1.
struct RunPrediction {
  PublishedRun run;
  std::optional<double> seconds;  // of an iteration
  double uncertainty = 0;         // of them, relative (Report::uncertainty)
  // Of the heaviest rank, with what the allocator reserves, the CUDA context and NCCL's buffers where they
  // were counted.
  std::optional<double> memory_bytes;
  std::optional<bool> fits;  // all that lies on the fullest GPU (result/memory/footprint.h)
  std::string skipped;       // why there are no seconds; "" when there are
};

// Errors of those predictions that can be compared, by what they are errors of.
struct PredictionErrors {
  std::vector<double> core, all, memory;
  std::map<std::string, std::vector<double>> by_family;
  struct Fits {
    std::size_t fit = 0, of = 0;
  };
  Fits ran, out_of_memory;  // how many of them were predicted to fit
  std::size_t inside = 0;   // measured times that lie within what the prediction is said to be off
};
PredictionErrors errors_of(const std::vector<RunPrediction>& predictions);
double time_error(const RunPrediction& prediction);  // of one with both times

// A run that cannot be predicted says why in `skipped`. Engine::simgrid: each run in a process of its own,
// and no other thread may run in the caller.
std::vector<RunPrediction> predict(const std::vector<PublishedRun>& runs, Engine engine, int jobs);

std::string write_predictions(const std::vector<RunPrediction>& predictions);       // a table
std::string write_predictions_json(const std::vector<RunPrediction>& predictions);  // one object

}  // namespace rehearse
