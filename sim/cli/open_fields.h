// Which whole runs may a published row be whose source does not say all of its configuration?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

// The row with each of the values that `missing` fields can have, in every combination: recompute (none,
// selective, full), batch.micro (powers of two that divide a replica's batch), parallel.vpp (of interleaved
// 1F1B: what divides a pipeline rank's layers), model.heads (of 64 to 256 wide, divisible by tp). Empty where
// a field is missing that is none of them, or no value is legal. Not all of them fit in memory.
std::vector<Json> candidates_of(const Json& row, const std::vector<std::string>& missing);

}  // namespace rehearse
