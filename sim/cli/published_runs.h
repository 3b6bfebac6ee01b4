// Which training runs have others measured, and what scenario is each?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/scenario.h"

namespace rehearse {

// One row: a whole configuration, and what its source printed of it.
struct PublishedRun {
  std::string id, family;
  bool core = false;                 // counts for the headline error
  std::string missing;               // what the source does not say: then without source and model
  std::optional<double> measured_s;  // of an iteration: printed, else derived from what was
  std::optional<double> memory_bytes;
  bool counts_reserved = false;  // that memory is what the allocator reserved, or nvidia-smi sees
  bool counts_context = false;   // and the CUDA context with PyTorch's kernels
  ScenarioSource source;         // the row as a scenario, without its model
  Model model;
};

// A list of runs (keys: id, family, core, cluster, hardware, model, parallel, batch, precision, recompute,
// measured, derived, missing). What a family's runs did and their rows do not say is in
// calibrate/data/runs/practices.json; a family that is not there takes the defaults of Megatron core.
// InputError for a file that is not of this form, with the row.
std::vector<PublishedRun> read_published_runs(const std::string& file);

}  // namespace rehearse
