// To which class does a published run belong, by its own data, and how large are the errors of each class?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "validate/predict_runs.h"

namespace rehearse {

// A run is launch-bound where the GPU waits for the CPU's launches for this share of kernel time.
inline constexpr double kLaunchBound = 0.1;

// The first that holds: "experts (MoE)" by its model, "FSDP" by its framework, "launch-bound" by the
// predicted share of kernel time (kLaunchBound), else "dense on A100" and the like by its GPU.
std::string class_of(const RunPrediction& prediction);

// The first word of a GPU's name that holds a digit: "H100" of "H100-SXM5-80GB".
std::string gpu_generation(const std::string& name);

struct ClassErrors {
  std::vector<double> errors;  // of step times, or of memory
  std::map<Known, int> known;  // runs by where their settings were found
};

// Of the runs that have both a predicted and a measured time.
std::map<std::string, ClassErrors> errors_by_class(const std::vector<RunPrediction>& predictions);

ClassErrors memory_errors(const std::vector<RunPrediction>& predictions);

// "script 66, table 5"
std::string to_string(const std::map<Known, int>& known);

}  // namespace rehearse
