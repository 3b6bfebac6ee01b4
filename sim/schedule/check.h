// Can this schedule run to its end? Counts, order, matching of messages, and freedom from deadlock, without
// any device.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace rehearse {

// What is wrong, one sentence each; empty when nothing is. Checked: every stage has each microbatch's forward
// and backward exactly once (B, or I and W) and on one rank; forward before backward; every send has its
// receive in the same order on both sides of a stream; no deadlock with a queue per stream, and none when all
// messages of a rank share one. A deadlock's sentence is followed by the table of compute ops by rank, the
// stuck cells marked.
std::vector<std::string> check_schedule(const Schedule& schedule, const Plan& plan);

// The first of these alone, which an order must keep before transfers can be put into it: each op once,
// forward before backward, a stage on one rank.
std::vector<std::string> check_computation(const Schedule& schedule, const Plan& plan);

}  // namespace rehearse
