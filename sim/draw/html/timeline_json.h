// How does a timeline reach the scripts of a page, small enough for 100,000 spans?
#pragma once

#include <nlohmann/json.hpp>

#include "result/report.h"

namespace rehearse::html {

// {tick_s, end, one_queue, pp, stages, microbatches, kinds [names], streams [names], rows_of, rows: [{rank,
//   pipeline_rank, lanes: [{stream, begin, length, kind, stage, microbatch, part}], idle: {begin, length,
//   moving, op}}]}
//
// Times count ticks; `begin` holds the distance from the end of the span before. A row for each rank
// that was walked, beyond 32 of them for each pipeline rank: the first of its replicas. Columns that are all
// zero are left out. `idle` are the parts of the gaps of the compute stream: while what it waits for moves
// (1), and before (0), with the name of that op. Beyond 400,000 spans only every n-th row is there, the first
// and the last among them; rows_of is their number before.
nlohmann::ordered_json timeline_json(const Timeline& timeline, const Schedule& schedule,
                                     const Report& report);

// {time_s: [...], ranks: [{rank, state_bytes, bytes: [...]}]}: the memory of at most eight pipeline ranks at
// 480 moments, each the most since the moment before.
nlohmann::ordered_json memory_json(const Timeline& timeline, const Schedule& schedule, const Report& report,
                                   const Work& work);

}  // namespace rehearse::html
