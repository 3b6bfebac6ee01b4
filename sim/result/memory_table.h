// How is the memory of a plan shown: rank by rank, the heaviest named, and how few GPUs would do?
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "memory/sizing.h"
#include "result/report.h"

namespace rehearse {

// "0-3, 5": ascending numbers in runs.
std::string write_runs(const std::vector<int>& numbers);

// What is known of the heaviest rank beside the report.
struct HeaviestRank {
  std::string peak_op;  // name of the op that runs at its peak
};

std::string write_memory_table(const Report& report, const HeaviestRank& heaviest,
                               const std::optional<FewestGpus>& fewest);

// The report's memory object with what the table adds: the room on the fullest GPU, the state's bytes a
// parameter, what the allocator reserves, and how much more that is than the peak, and the fewest GPUs.
nlohmann::ordered_json memory_json(const Report& report, const HeaviestRank& heaviest,
                                   const std::optional<FewestGpus>& fewest, const std::string& version);

}  // namespace rehearse
