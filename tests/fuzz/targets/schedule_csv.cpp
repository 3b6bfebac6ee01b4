#include "cli/read_order.h"
#include "fuzz/target.h"

// As a plan that has what the file says: its stages, its microbatches, and every check of an order.
void rehearse::fuzz::read(const std::string& input) {
  const std::string file = file_of(input);
  Experiment experiment;
  read_order(file, experiment);
  experiment.plan.pp = experiment.order->pp;
  experiment.plan.global_batch = experiment.order->microbatches;
  require_order(experiment, file);
}
