// Which messages does an op of a schedule send?
#pragma once

#include <cstddef>
#include <vector>

#include "plan/messages.h"
#include "schedule/schedule.h"

namespace rehearse {

// The op with its part, or the whole stage in its place, as plan/messages.h needs it.
SentBy sent_by(const MessageSizes& sizes, const RankOps& ops, std::size_t index, bool whole_stage = false);

// Messages of ops[index], one after the other.
std::vector<Collective> messages_of(const MessageSizes& sizes, const Plan& plan, const RankOps& ops,
                                    std::size_t index);

// The same as one message to each group that has_peers(): `bytes` of all calls together.
std::vector<Collective> messages_by_group(const MessageSizes& sizes, const Plan& plan,
                                          const CommGroups& groups, const RankOps& ops, std::size_t index);

// Whether ops[index] is an UNSHARD whose unit a backward uses next.
bool gathers_for_backward(const RankOps& ops, std::size_t index);

}  // namespace rehearse
