// Which ranks' memory is drawn, where not all can be?
#pragma once

#include <vector>

#include "result/report.h"

namespace rehearse {

// One replica of each of at most `most` pipeline ranks, in order: the heaviest, the others evenly spread.
std::vector<const TimelineRank*> drawn_ranks(const Timeline& timeline, const Report& report,
                                             std::size_t most);

// Persistent memory of a rank.
double state_and_buffer_bytes(const RankMemory& memory);

}  // namespace rehearse
