// How long does a collective take among ranks of this machine?
#pragma once

#include "calibrate/timing/jobs.h"
#include "calibrate/timing/sampling.h"

namespace rehearse {

// Ranks are threads of this process, each with a CPU device of one thread; messages go through memory. One
// operation follows the other without a pause, as nccl-tests times them.
std::vector<double> time_message(const MessageJob& job, double budget_s,
                                 const std::function<bool()>& stopped);

}  // namespace rehearse
