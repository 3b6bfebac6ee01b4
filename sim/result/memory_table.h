// How is the memory of a plan shown: rank by rank, the heaviest named, and how few GPUs would do?
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "result/report.h"
#include "result/sizing.h"

namespace rehearse {

// "0-3, 5": ascending numbers in runs.
std::string write_runs(const std::vector<int>& numbers);

// `peak_op` is the name of the op that runs at the heaviest rank's peak.
std::string write_memory_table(const Report& report, const std::string& peak_op,
                               const std::optional<FewestGpus>& fewest);

// The report's memory object with what the table adds: the room on the fullest GPU, the state's bytes a
// parameter, the allocator's slack and the fewest GPUs.
nlohmann::ordered_json memory_json(const Report& report, const std::string& peak_op,
                                   const std::optional<FewestGpus>& fewest, const std::string& version);

}  // namespace rehearse
