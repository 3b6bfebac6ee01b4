// Which figures of the hardware can a user set, and in which direction are they better?
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "run.h"

namespace rehearse::properties {

struct Better {
  std::string name;     // "memory bandwidth"
  std::string pointer;  // into a cluster file; empty: of the profile's launches
  std::string unit;     // as a cluster file writes it; empty: a number
  double (*now)(const Experiment& experiment) = nullptr;  // 0: the cluster has no such figure
  bool is_better_when_less = false;
  bool of_links = false;  // of links, or of kernels that share a GPU with them
};
void showValue(const Better& better, std::ostream& out);

const std::vector<Better>& better_figures();

// The run with the figure `times` as good, read anew as a user's. Nothing where it has none, or where a rule
// ties it to another one.
std::optional<Experiment> improved(const Run& run, const Better& better, double times);

}  // namespace rehearse::properties
