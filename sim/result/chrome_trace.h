// How does a timeline look in Perfetto, chrome://tracing or TensorBoard? Chrome JSON shaped as Kineto
// (PyTorch's profiler) writes it.
#pragma once

#include <iosfwd>

#include "result/report.h"

namespace rehearse {

// One process a rank, one track a stream, so that predicted and measured traces stand side by side:
//  - compute slices "PP:2F0"; messages and reductions "ncclDevKernel_SendRecv 2SEND_F0",
//    "ncclDevKernel_AllReduce 0REDUCE_GRAD.2": only the time in which they move;
//  - "wait 2RECV_F0" on a track of its own: the idle of the compute stream that this op causes before it
//  moves;
//  - flows from each send to its receive, and the activation bytes as a counter.
// The report stands in "otherData", so that read_trace.h has all that a comparison needs.
// Slices of a track are sorted and do not overlap; times are rounded to whole nanoseconds. Written as it
// goes, in memory that does not grow with the number of ops of all ranks. InputError when the timeline does
// not belong to the schedule.
void write_chrome_trace(std::ostream& out, const Timeline& timeline, const Schedule& schedule,
                        const Report& report, const Work& work);

}  // namespace rehearse
