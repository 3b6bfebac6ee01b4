// What does the network read? Tokens made from a seed, which can be learned.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace rehearse {

struct Batch {
  std::vector<std::int64_t> tokens, labels;  // row = place * sequences + sequence
};

// Microbatch `microbatch` of replica `replica` in step `step`. The global batch of a step is the same however
// it is divided. A token follows from the one before it but for a random choice of four.
Batch make_batch(const Plan& plan, std::int64_t vocab, std::uint64_t seed, std::int64_t step, int replica,
                 int microbatch);

}  // namespace rehearse
