// Do all ranks that one simulated instance stands for meet the same hardware?
#pragma once

#include "run/iteration.h"

namespace rehearse::properties {

// Every group of every rank of a pipeline rank has the same shape in nodes and NICs, nodes are joined by one
// switch each and by a fabric that no traffic can fill, and nothing is slow. Then folding is exact.
bool replicas_are_alike(const Experiment& experiment);

}  // namespace rehearse::properties
