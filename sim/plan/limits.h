// How large may a run be? Far beyond any machine, but small enough for 64-bit products of ranks, sequences
// and tokens.
#pragma once

#include <cstdint>

namespace rehearse {

inline constexpr std::int64_t kMaxDegree = 1 << 20;  // of one kind of parallelism
inline constexpr std::int64_t kMaxRanks = 1 << 30;
inline constexpr std::int64_t kMaxSequences = std::int64_t{1} << 32;  // of a batch
inline constexpr std::int64_t kMaxTokens = std::int64_t{1} << 32;     // of a sequence, of a microbatch

// A schedule's lists hold an entry for every stage and microbatch: beyond this they would not fit in memory.
inline constexpr std::int64_t kMaxStageMicrobatches = 20'000'000;

}  // namespace rehearse
