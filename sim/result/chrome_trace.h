// How is a timeline shown in Perfetto, chrome://tracing or TensorBoard? As Chrome JSON in the form that
// Kineto (PyTorch's profiler) writes.
#pragma once

#include <iosfwd>

#include "result/report.h"

namespace rehearse {

// One process a rank, one track a stream, so that predicted and measured traces can be compared:
// - compute slices "PP:2F0";
// - messages and reductions "ncclDevKernel_SendRecv 2SEND_F0", "ncclDevKernel_AllReduce 0REDUCE_GRAD.2": only
//   while they transfer data;
// - "wait 2RECV_F0" on a track of its own: the idle time of the compute stream that this op causes before its
//   transfer starts;
// - flows from each send to its receive, and the activation bytes as a counter.
// The report is in "otherData", so that read_trace.h has all data for a comparison. Slices of a track are
// sorted and do not overlap. Times are rounded to whole nanoseconds. The trace is written incrementally;
// memory does not grow with the number of ops of all ranks. InputError when the timeline does not belong to
// the schedule.
void write_chrome_trace(std::ostream& out, const Timeline& timeline, const Schedule& schedule,
                        const Report& report, const Work& work);

}  // namespace rehearse
