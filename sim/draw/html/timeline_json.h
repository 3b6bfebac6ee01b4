// How is a timeline passed to the scripts of a page, small enough for 100,000 spans?
#pragma once

#include <nlohmann/json.hpp>

#include "result/report.h"

namespace rehearse::html {

// {tick_s, end, one_queue, pp, stages, microbatches, kinds [names], streams [names], rows_of, rows: [{rank,
//   pipeline_rank, lanes: [{stream, begin, length, kind, stage, microbatch, part}], idle: {begin, length,
//   moving, op}}]}
//
// Times are in ticks; `begin` is the distance from the end of the previous span. There is one row for each
// simulated rank. With more than 32 of them, there is one for each pipeline rank: its first replica. Columns
// that are all zero are omitted.
//
// `idle` lists parts of the gaps of the compute stream, with the name of the op that it waits for: while that
// op transfers data (1), and before (0). Beyond 400,000 spans only every n-th row is present, including the
// first and the last; rows_of is the original number of rows.
nlohmann::ordered_json timeline_json(const Timeline& timeline, const Schedule& schedule,
                                     const Report& report);

// {time_s: [...], ranks: [{rank, state_bytes, bytes: [...]}]}: the memory of at most eight pipeline ranks at
// 480 times, each the maximum since the previous time.
nlohmann::ordered_json memory_json(const Timeline& timeline, const Schedule& schedule, const Report& report,
                                   const Work& work);

}  // namespace rehearse::html
