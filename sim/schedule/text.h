// How a schedule is written down: a readable text that round-trips, and PyTorch's CSV of actions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace rehearse {

// "rank 0: 0F0 0SEND_F0 ..." with waits in parentheses, "0F2(0RECV_B0,0SEND_F1)", where they are not implied
// (implied_waits.h), "0B7.2/4" for part 2 of 4 and "@stream" on a stream that is not the kind's own;
// read_text(write_text(s)) == s.
std::string write_text(const Schedule& schedule);
Schedule read_text(const std::string& text, const std::string& file);

// One row per rank, cells like "0F0", "1B3", "0SEND_F0"; only ops that PyTorch knows (no STEP, no
// REDUCE_TIED). Split ops are written once. `file` is cited in errors of the reader, which accepts the
// compute cells F, B, I, W, SEND/RECV and REDUCE_GRAD, and rejects trailing characters, unknown types and
// gaps. An empty cell is an idle step; an
// overlapped pair, "(0F1;1B0)OVERLAP_F_B", runs one after the other. Waits are the implied ones.
std::string write_csv(const Schedule& schedule);
Schedule read_csv(const std::string& csv, const std::string& file);

// Rows are ranks, columns the steps of the compute stream; the ops in `marked` (rank, op index) carry "<-",
// and columns far from every mark are left out ("...").
std::string compute_table(const Schedule& schedule, const std::vector<std::pair<int, int>>& marked = {});

}  // namespace rehearse
