// Which fields of a plan follow from a schedule in a file (PyTorch's CSV of actions)?
#pragma once

#include <string>

#include "run/iteration.h"

namespace rehearse {

// Whether "schedule" names a file of actions rather than a known schedule.
bool is_order_file(const std::string& schedule);

// Sets the experiment's order and its name. Sets the plan's fields that the order determines: chunks a rank,
// placement of stages, and, with several chunks a rank, groups of all microbatches. InputError with row and
// cell for orders that read_csv() rejects, and when stages neither loop over the ranks nor form a V.
void read_order(const std::string& file, Experiment& experiment);

// InputError, with legal values, when ranks, stages or microbatches differ from the plan's, or the order
// cannot run to its end.
void require_order(const Experiment& experiment, const std::string& scenario_file);

}  // namespace rehearse
