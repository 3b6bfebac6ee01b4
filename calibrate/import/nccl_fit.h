// By how much do measured collectives differ from what NCCL believes, class by class of systems?
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "cost/nccl/table.h"

namespace rehearse::nccl {

// log(measured / believed) by size: the key counts steps of kOctaves, the value is the median of the rows
// within half a step.
using Curve = std::map<int, double>;

// A table with the system it was measured on.
struct Sample {
  Table table;
  Cluster cluster;
  GroupShape group;
  Curve curve;
  std::string hardware;  // that its system counts as (calibrate/import/hardware.h)
};

// All tables of a folder that are not irregular and whose cluster is known, in order of their names.
std::vector<Sample> read_samples(const std::filesystem::path& folder, const Constants& constants);

// One entry for each operation on each group of ranks: the median where several samples tell of the same.
// `systems`: what they were measured on is added to it.
std::vector<Measured> measured_of(const std::vector<const Sample*>& samples, How how,
                                  std::vector<KnownSystem>& systems);

// Corrections from general to special: by GPU generation and link; by operation; by hardware; by hardware and
// operation. Each is the median of what the ones before it left over: over hardware (of the medians over its
// tables) for the first two, over tables for the others; shrunk by n / (n + k), as fewer say less. Then what
// was measured on each very system, the median of its tables. No row is used twice on one level.
Model fit(const Constants& constants, const std::vector<const Sample*>& samples);

}  // namespace rehearse::nccl
