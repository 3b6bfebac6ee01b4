// How is a run written for trace tools: Perfetto, HTA and TensorBoard, Chakra's feeders?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "result/report.h"

namespace rehearse {

// Perfetto's protobuf (.pftrace) of a Chrome trace from write_chrome_trace() or join_traces(): a process a
// rank, a thread a stream, flows from sends to receives, counters. InputError for events without a track.
std::string perfetto_trace(const Json& chrome, const std::string& file);

// One trace a rank in Kineto's form, from a Chrome trace of all ranks. pid is the GPU of the node, tid the
// stream. Kernels have correlations. Waits, which no GPU runs, and flows, which cross files, are omitted.
struct RankTrace {
  int rank = 0;
  Json trace;
};
std::vector<RankTrace> kineto_traces(const Json& chrome, const Report& report);

// The file of a rank. HTA uses the first match of `"rank":\s+(\d+)` as the rank of the file, and rank 0
// without a match (hta/common/trace_file.py at f4d0062). So distributedInfo comes first, with a space after
// each colon as in Kineto. All else is compact, one event a line.
std::string kineto_text(const RankTrace& rank);

// Data for a Chakra execution trace.
struct TracedRun {
  const Timeline& timeline;
  const Schedule& schedule;
  const Report& report;
  const Work& work;
};

// Process groups by name, for collectives that are ops. Each group occurs once, in order of its first rank.
Json chakra_groups(const TracedRun& run);

// Chakra ET (MLCommons, et_def.proto) of one global rank: one node an op, with the duration of its span.
// Compute nodes contain their inner collectives, which the work prices with them. `groups`: from
// chakra_groups().
std::string chakra_trace(const TracedRun& run, const Json& groups, int rank);

}  // namespace rehearse
