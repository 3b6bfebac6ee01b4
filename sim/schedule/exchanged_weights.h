// Which weights does an op exchange, and how often, where each is gathered as a list by itself
// (exchanges_lists())?
#pragma once

#include <cstdint>
#include <vector>

#include "plan/weights.h"
#include "schedule/schedule.h"

namespace rehearse {

// Of the op's unit, or of the whole stage where the op has one part. `weights`: by stage and unit.
Weights weights_of(const Op& op, const std::vector<std::vector<Weights>>& weights);

// Into how many even parts the op's exchanges divide what it moves: a gather's weights, a reduction's
// buckets; at least one.
int exchanged_parts(const Op& op, const std::vector<std::vector<Weights>>& weights);

// Whether ops[index] is an UNSHARD whose unit a backward uses next.
bool gathers_for_backward(const RankOps& ops, std::size_t index);

// Exchanges of ops[index]: a gather for each weight, for a backward once more for those that the recompute
// drops; a reduction for each bucket.
int weight_exchanges(const RankOps& ops, std::size_t index, const std::vector<std::vector<Weights>>& weights);

}  // namespace rehearse
