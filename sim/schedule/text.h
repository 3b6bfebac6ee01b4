// How is a schedule written down? As a readable text that can be read back, and as PyTorch's CSV of actions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace rehearse {

// "rank 0: 0F0 0SEND_F0 ...". Waits that are not implied (implied_waits.h) are in parentheses:
// "0F2(0RECV_B0,0SEND_F1)". "0B7.2/4" is part 2 of 4. "@stream" names a stream other than the kind's own.
// read_text(write_text(s)) == s.
std::string write_text(const Schedule& schedule);
Schedule read_text(const std::string& text, const std::string& file);

// One row per rank, with cells like "0F0", "1B3", "0SEND_F0". Only ops that PyTorch knows are written (no
// STEP, no REDUCE_TIED), split ops once. The reader accepts the compute cells F, B, I, W, SEND/RECV and
// REDUCE_GRAD. It rejects trailing characters, unknown types and gaps; errors cite `file`. An empty cell is
// an idle step. An overlapped pair, "(0F1;1B0)OVERLAP_F_B", runs in sequence. Waits are the implied ones.
std::string write_csv(const Schedule& schedule);
Schedule read_csv(const std::string& csv, const std::string& file);

// Rows are ranks, columns the steps of the compute stream. The ops in `marked` (rank, op index) carry "<-".
// Columns far from every mark are replaced by "...".
std::string compute_table(const Schedule& schedule, const std::vector<std::pair<int, int>>& marked = {});

}  // namespace rehearse
