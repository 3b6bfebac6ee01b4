#include "fuzz/target.h"
#include "scenario/read_order.h"

namespace rehearse::fuzz {

namespace {

// As a plan that has what the file says: its stages, its microbatches, and every check of an order.
const Target kScheduleCsv("schedule_csv", [](const std::string& input) {
  const std::string file = file_of(input);
  Experiment experiment;
  read_order(file, experiment);
  experiment.plan.pp = experiment.order->pp;
  experiment.plan.global_batch = experiment.order->microbatches;
  require_order(experiment, file);
});

}  // namespace

}  // namespace rehearse::fuzz
