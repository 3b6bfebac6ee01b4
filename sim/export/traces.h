// How does a run look to the tools that open traces: Perfetto, HTA and TensorBoard, Chakra's feeders?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "result/report.h"

namespace rehearse {

// Perfetto's protobuf (.pftrace) of a Chrome trace, as write_chrome_trace() or join_traces() make it: a
// process a rank, a thread a stream, flows from sends to receives, counters. InputError for events without a
// place.
std::string perfetto_trace(const Json& chrome, const std::string& file);

// One trace a rank as Kineto writes it, of a Chrome trace of all ranks: pid is the GPU of the node, tid the
// stream; kernels carry correlations; waits, which no GPU runs, and flows, which cross files, are left out.
struct RankTrace {
  int rank = 0;
  Json trace;
};
std::vector<RankTrace> kineto_traces(const Json& chrome, const Report& report);

// The file of a rank. HTA takes the first match of `"rank":\s+(\d+)` for the rank of the file, and rank 0
// where nothing matches (hta/common/trace_file.py at f4d0062). So distributedInfo stands first, with a space
// behind each colon as Kineto writes it. All else is compact, an event a line.
std::string kineto_text(const RankTrace& rank);

// What a Chakra execution trace is made from.
struct TracedRun {
  const Timeline& timeline;
  const Schedule& schedule;
  const Report& report;
  const Work& work;
};

// Process groups by name: those of collectives that are ops. Each group once, in order of its first rank.
Json chakra_groups(const TracedRun& run);

// Chakra ET (MLCommons, et_def.proto) of one global rank: a node an op with the duration of its span. Compute
// nodes contain the collectives inside of them, which the work prices with them. `groups`: of
// chakra_groups().
std::string chakra_trace(const TracedRun& run, const Json& groups, int rank);

}  // namespace rehearse
