// Which step time can no sharing of the links beat?
#pragma once

#include <vector>

#include "run/loads.h"
#include "run/message_times.h"
#include "schedule/tasks.h"

namespace rehearse {

// A lower bound in seconds on the end of simulate(schedule, tasks, loads), for links without jitter. It is
// the larger of two bounds:
// - The longest path. A task lasts Loads::alone_s() at least: its timers run in any case, and a link carries
//   no byte faster than its capacity. Other tasks can only take capacity from it.
// - The busiest link. A link is a machine, and the transfers that cross it are jobs: the head of a job is the
//   longest path to its first byte, its length is bytes over capacity, its tail is the longest path from its
//   last byte. No way to share the link, max-min fairness included, ends before Jackson's preemptive schedule
//   (longest tail first; Carlier and Pinson 1989, An algorithm for solving the job-shop problem, section 3).
// A transfer counts a nanosecond less than it takes, and the sum a billionth less: SimGrid ends a transfer up
// to a nanosecond early, and sums in another order. O(t log t) for t transfers.
double least_time(const Tasks& tasks, const Loads& loads);

// A lower bound on the end of any run of the same schedule, whatever its fold. `tasks` and `loads` have each
// pipeline rank once. An instance is a rank, and each of its tasks waits in the unfolded run for the same
// tasks and for those of other ranks. There its messages take no less than their price between this rank and
// its own peers: a rank that shares a NIC or a link only gets less of it. So the longest path of these prices
// is a bound. The capacity of folded links is not: it stands for the rank that has the least.
double least_time_of_any_fold(const Tasks& tasks, const Loads& loads, const MessageTimes& message_s);

// A transfer over one link.
struct LinkJob {
  double head_s = 0, length_s = 0, tail_s = 0;
};

// The end of Jackson's preemptive schedule of the jobs. Sorts them by their heads.
double jackson_end(std::vector<LinkJob>& jobs);

}  // namespace rehearse
