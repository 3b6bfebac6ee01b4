// How is the memory of a plan shown? Rank by rank, with the heaviest named and the fewest GPUs that suffice.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "memory/sizing.h"
#include "result/report.h"

namespace rehearse {

// "0-3, 5": ascending numbers in runs.
std::string write_runs(const std::vector<int>& numbers);

// Facts about the heaviest rank that are not in the report.
struct HeaviestRank {
  std::string peak_op;  // name of the op that runs at its peak
};

std::string write_memory_table(const Report& report, const HeaviestRank& heaviest,
                               const std::optional<FewestGpus>& fewest);

// The report's memory object with the additions of the table:
// - the room on the fullest GPU;
// - state bytes a parameter;
// - memory that the allocator reserves, and its excess over the peak;
// - the fewest GPUs.
nlohmann::ordered_json memory_json(const Report& report, const HeaviestRank& heaviest,
                                   const std::optional<FewestGpus>& fewest, const std::string& version);

}  // namespace rehearse
