// Which training runs have others measured, and what scenario is each?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/scenario.h"

namespace rehearse {

// What a source took for memory in use: what PyTorch's allocator hands out, what it reserved for that, or
// what nvidia-smi shows, which is that, the CUDA context and NCCL's buffers.
enum class Counted : std::uint8_t { allocated, reserved, nvidia_smi };

// Where a run's settings were found: its own script, recipe, submission or log; a table of a paper, the rest
// being its framework's defaults at that time; or, in part, nowhere, so that they were inferred.
enum class Known : std::uint8_t { script, table, inferred, not_stated };

// A whole configuration.
struct Candidate {
  ScenarioSource source;  // without its model
  Model model;
};

// One row: a configuration, and what its source printed of it.
struct PublishedRun {
  std::string id, family;
  bool core = false;                 // counts for the headline error
  std::string missing;               // what the source does not say; "" of a whole configuration
  std::optional<double> measured_s;  // of an iteration: printed, else derived from what was
  bool out_of_memory = false;        // it ended so: without measured_s
  std::optional<double> memory_bytes;
  Counted counted = Counted::allocated;  // in memory_bytes
  Known known = Known::not_stated;
  bool read_from_plot = false;  // the measured time
  // The row, once; of what does not say everything all that it may be (cli/open_fields.h), none where nobody
  // can tell.
  std::vector<Candidate> candidates;
};

// A list of runs (keys: id, family, core, cluster, hardware, model, parallel, batch, precision, recompute,
// measured, derived, missing). What a family's runs did and their rows do not say is in
// calibrate/data/runs/practices.json; a family that is not there takes the defaults of Megatron core.
// InputError for a file that is not of this form, with the row.
std::vector<PublishedRun> read_published_runs(const std::string& file);

}  // namespace rehearse
