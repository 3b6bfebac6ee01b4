// Can this schedule run to its end? The check covers counts, order, matching of messages and freedom from
// deadlock, without any device.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace rehearse {

// Returns the faults, one sentence each; empty when there are none. Rules:
// - Every stage has each microbatch's forward and backward exactly once (B, or I and W) and on one rank.
// - Forward comes before backward.
// - Every send has its receive, in the same order on both sides of a stream.
// - There is no deadlock with a queue per stream, and none when all messages of a rank share one queue.
//
// The table of compute ops by rank follows a deadlock's sentence, with the stuck cells marked.
std::vector<std::string> check_schedule(const Schedule& schedule, const Plan& plan);

// The rules that an order must keep before transfers can be added: each op once, forward before backward, a
// stage on one rank.
std::vector<std::string> check_computation(const Schedule& schedule, const Plan& plan);

}  // namespace rehearse
