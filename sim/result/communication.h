// Which messages does one rank send, how long do they take, and how much of that does compute wait for?
#pragma once

#include <vector>

#include "plan/messages.h"
#include "result/report.h"
#include "result/shares.h"

namespace rehearse {

// Messages and reductions come from the spans of their ops, collectives inside compute ops (tp, cp, ep) from
// the Work. Those collectives run between the kernels of one stream. Their time that no kernel hides is
// exposed, and only that is counted as busy. An axis with several collectives divides its seconds by the
// bytes that each puts on the wire (2 (n-1)/n of an all-reduce's buffer, (n-1)/n of any other's: NCCL's bus
// bandwidth).
std::vector<CommunicationLine> communication_lines(const TimelineRank& rank, const RankOps& ops,
                                                   const Plan& plan, const Work& work,
                                                   const MessageSizes& sizes, const RankTime& time);

}  // namespace rehearse
