// Which flags does an experiment have, by what they describe?
#pragma once

#include <vector>

#include "cli/flags.h"

namespace rehearse {

std::vector<Flag> flags_of_inputs();   // model, GPUs and their profile
std::vector<Flag> flags_of_ranks();    // how they divide the work, in which order they do it, what they send
std::vector<Flag> flags_of_kernels();  // what they compute: numbers, fusion, what is computed again
std::vector<Flag> flags_of_state();    // how parameters, gradients and optimizer are divided and exchanged
std::vector<Flag> flags_of_conditions();  // how a run is simulated, and what departs from the ideal

}  // namespace rehearse
