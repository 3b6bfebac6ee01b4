// How is a step of very many microbatches predicted without simulating all of them?
//
// Three shorter steps are simulated, one round of the pipeline apart, and their figures continued
// (result/extrapolate.h). Each of them is long enough that its middle repeats exactly (run/steady.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "run/iteration.h"
#include "run/simulate.h"

namespace rehearse {

struct LongStep {
  std::optional<Iteration> iteration;         // of the last shorter step, with the report of the long one
  std::string why_not;                        // every microbatch must be simulated; "": nothing to say
  std::unique_ptr<Simulator> simulator = {};  // of the process, where it has been used
};

// Microbatches that go through a model chunk before the next one: a round has a multiple of them.
std::int64_t microbatch_unit(const Plan& plan);

// The same experiment with fewer microbatches, which stands for the longer one.
Experiment with_microbatches(Experiment experiment, std::int64_t microbatches);

// Microbatches of all shorter steps together, where the first length is enough; a longer step is worth it.
std::int64_t microbatches_of_shorter(const Plan& plan);
bool may_be_shortened(const Experiment& experiment);

LongStep run_long_step(const Experiment& experiment);

}  // namespace rehearse
