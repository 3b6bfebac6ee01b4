// How far off is the simulator for training runs that others have measured?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/published_runs.h"
#include "result/error_summary.h"

namespace rehearse {

struct Band {
  double low = 0, high = 0;  // seconds of an iteration
};

// What was predicted for one run. Errors are predicted / measured - 1.
struct RunPrediction {
  PublishedRun run;
  std::optional<double> seconds = {};  // of an iteration
  double uncertainty = 0;              // of them, relative (Report::uncertainty)
  // Which holds the measured time nine times of ten, if the uncertainty is what it says; of a run that leaves
  // something open it holds the bands of all that the run may be.
  std::optional<Band> band = {};
  // Of the heaviest rank, with what the allocator reserves, the CUDA context and NCCL's buffers where they
  // were counted.
  std::optional<double> memory_bytes = {};
  std::optional<bool> fits = {};  // all that lies on the fullest GPU (result/memory/footprint.h)
  double launch_bound_share = 0;  // of kernel time, as in RunFacts
  bool under_fsdp = false;        // of PyTorch
  std::string gpu = {};           // of the cluster
  std::string skipped = {};       // why there are no seconds; "" when there are
};

struct Share {
  std::size_t n = 0, of = 0;
};

// Errors of those predictions that can be compared, by what they are errors of.
struct PredictionErrors {
  std::vector<double> core, all, memory;
  std::map<std::string, std::vector<double>> by_family;
  Share ran, out_of_memory;  // how many of them were predicted to fit
  Share inside;              // measured times within their band
};
PredictionErrors errors_of(const std::vector<RunPrediction>& predictions);
double relative_error(double predicted, double measured);
double time_error(const RunPrediction& prediction);  // of one with both times
bool is_inside(const RunPrediction& prediction);     // of one with a band and a measured time

Json or_null(const std::optional<double>& value);

// A run that cannot be predicted says why in `skipped`. Engine::simgrid: each run in a process of its own,
// and no other thread may run in the caller.
std::vector<RunPrediction> predict(const std::vector<PublishedRun>& runs, Engine engine, int jobs);

}  // namespace rehearse
