#include "fuzz/target.h"
#include "scenario/read_order.h"

namespace rehearse::fuzz {

namespace {

// Uses a plan with the file's stages and microbatches, and runs every check of an order.
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
