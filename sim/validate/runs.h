// Which training runs have others measured, and which scenario is each?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

// The memory that a source counted: allocated by PyTorch's allocator, reserved by it, or shown by nvidia-smi,
// which adds the CUDA context and NCCL's buffers.
enum class Counted : std::uint8_t { allocated, reserved, nvidia_smi };

// Source of a run's switches. script: its own script, recipe, submission or log. table: a paper's table, with
// the framework's defaults of that time for the rest. inferred: some switches have no source.
enum class Known : std::uint8_t { script, table, inferred, not_stated };

// One line of a file of runs (docs/run.schema.json).
struct PublishedRun {
  std::string place;                 // FILE:LINE
  std::string id, family;            // names for people: they decide nothing
  bool core = false;                 // counts for the headline error
  std::string missing;               // facts that the source omits; "" of a whole configuration
  std::optional<double> measured_s;  // of a step
  bool out_of_memory = false;        // the run ended so: without measured_s
  std::optional<double> memory_bytes;
  Counted counted = Counted::allocated;  // in memory_bytes
  Known known = Known::not_stated;
  bool read_from_plot = false;  // the measured time
  Json scenario;
  Json why = Json::object();  // by JSON pointer into the scenario: the source of a switch that is not stated
  // The scenario. With open switches: one scenario for each combination of their values. None where the
  // values are unknown too.
  std::vector<Json> candidates;
  std::optional<Json> as_stated;  // the scenario with the stated switches alone; of whole configurations
};

// Throws InputError for a scenario with unknown words; `place` is cited as its file.
using CheckScenario = std::function<void(const Json& scenario, const std::string& place)>;

// The runs of a file, one JSON object a line. InputError with every line that is not of this form.
std::vector<PublishedRun> read_runs(const std::string& file, const CheckScenario& check);

}  // namespace rehearse
