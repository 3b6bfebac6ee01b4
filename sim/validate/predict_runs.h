// How large are the simulator's errors for published training runs?
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

// The prediction for one run. Errors are predicted / measured - 1.
struct RunPrediction {
  PublishedRun run;
  std::optional<double> seconds = {};  // of an iteration
  double uncertainty = 0;              // relative error of `seconds` (Report::uncertainty)
  // Contains the measured time in nine of ten cases, if the uncertainty is right. For a run with open
  // settings it contains the intervals of all combinations.
  std::optional<Band> band = {};
  // Memory of the heaviest rank, including reserved memory, CUDA context and NCCL's buffers where the source
  // counted them.
  std::optional<double> memory_bytes = {};
  std::optional<bool> fits = {};           // of all memory on the fullest GPU (memory/footprint.h)
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
  // Reads a scenario of a line; with Profiles::none only the data that memory needs.
  enum class Profiles : std::uint8_t { none, read };
  std::function<Experiment(const Json& scenario, const std::string& place, Profiles profiles)> read;
  std::function<void(std::size_t of)> done = [](std::size_t) {};  // one more prediction of so many
};

// A run that cannot be predicted has the reason in `skipped`. With Engine::simgrid each prediction runs in a
// process of its own, and no other thread may run in the caller.
std::vector<RunPrediction> predict(const std::vector<PublishedRun>& runs, const PredictionRequest& request);

}  // namespace rehearse
