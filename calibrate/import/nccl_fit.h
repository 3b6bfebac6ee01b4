// How far do measured collectives differ from NCCL's own model, for each class of systems?
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
  std::string hardware;  // name under which its system counts (calibrate/import/hardware.h)
};

// All regular tables of a folder with a known cluster, ordered by name.
std::vector<Sample> read_samples(const std::filesystem::path& folder, const Constants& constants);

// One entry for each operation on each group of ranks: the median where several samples measure the same.
// Adds the measured systems to `systems`.
std::vector<Measured> measured_of(const std::vector<const Sample*>& samples, How how,
                                  std::vector<KnownSystem>& systems);

// Corrections from general to special: by GPU generation and link; by operation; by hardware; by hardware and
// operation. Each is the median of the residuals of earlier ones, shrunk by n / (n + k), as few samples say
// less. The first two take medians over hardware (of the medians over its tables), the others over tables.
// After them come the measurements on each exact system, as the median of its tables. No row is used twice on
// one level.
Model fit(const Constants& constants, const std::vector<const Sample*>& samples);

}  // namespace rehearse::nccl
