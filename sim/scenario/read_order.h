// What of a plan follows from a schedule that stands in a file (PyTorch's CSV of actions)?
#pragma once

#include <string>

#include "run/iteration.h"

namespace rehearse {

// Whether "schedule" names a file of actions rather than a known schedule.
bool is_order_file(const std::string& schedule);

// Sets the experiment's order and its name, and in the plan what the order says: chunks a rank, where stages
// lie, and, of orders with several chunks a rank, groups of all microbatches. InputError with row and cell
// for what read_csv() rejects, and when stages neither loop over the ranks nor turn back in a V.
void read_order(const std::string& file, Experiment& experiment);

// InputError, with what would be legal, when ranks, stages or microbatches are not those of the plan, or the
// order cannot run to its end.
void require_order(const Experiment& experiment, const std::string& scenario_file);

}  // namespace rehearse
