// How far off is the simulator for training runs that others have measured?
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "result/error_summary.h"
#include "run/iteration.h"
#include "validate/runs.h"

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
  std::optional<bool> fits = {};           // all that lies on the fullest GPU (memory/footprint.h)
  double launch_bound_share = 0;           // of kernel time, as in RunFacts
  bool under_fsdp = false;                 // of PyTorch
  bool has_experts = false;                // its model
  std::string gpu = {};                    // of the cluster
  std::string skipped = {};                // why there are no seconds; "" when there are
  std::optional<double> as_stated_s = {};  // of the scenario with the stated switches alone
  std::string skipped_as_stated = {};      // why there are none
};

struct Share {
  std::size_t n = 0, of = 0;
};

struct TimeErrors {
  std::vector<double> core, all;
  std::map<std::string, std::vector<double>> by_family;
};

// Errors of the predictions that have a measurement.
struct PredictionErrors {
  TimeErrors full, as_stated;
  std::vector<double> memory;
  Share ran, out_of_memory;  // how many of them were predicted to fit
  Share inside;              // measured times within their band
};
PredictionErrors errors_of(const std::vector<RunPrediction>& predictions);
double relative_error(double predicted, double measured);
double time_error(const RunPrediction& prediction);  // of one with both times
bool is_inside(const RunPrediction& prediction);     // of one with a band and a measured time

Json or_null(const std::optional<double>& value);

struct PredictionRequest {
  Engine engine = Engine::simgrid;
  int jobs = 1;
  bool as_stated = true;  // a second prediction of each run, with the stated switches alone
  // A scenario of a line; with Profiles::none enough of it for memory.
  enum class Profiles : std::uint8_t { none, read };
  std::function<Experiment(const Json& scenario, const std::string& place, Profiles profiles)> read;
  std::function<void(std::size_t of)> done = [](std::size_t) {};  // one more prediction of so many
};

// A run that cannot be predicted says why in `skipped`. Engine::simgrid: each prediction in a process of its
// own, and no other thread may run in the caller.
std::vector<RunPrediction> predict(const std::vector<PublishedRun>& runs, const PredictionRequest& request);

}  // namespace rehearse
