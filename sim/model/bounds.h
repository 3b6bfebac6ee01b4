// How large may a network be? The bounds are far above any trained network. They are small enough that no
// parameter count overflows 64 bits.
#pragma once

#include <cstdint>
#include <string>

namespace rehearse::bounds {

inline constexpr std::int64_t kLayers = 1 << 12;
inline constexpr std::int64_t kHidden = 1 << 18;
inline constexpr std::int64_t kHeads = 1 << 13;
inline constexpr std::int64_t kHeadDim = 1 << 13;
inline constexpr std::int64_t kFfnHidden = 1 << 22;
inline constexpr std::int64_t kVocab = 1 << 27;
inline constexpr std::int64_t kPositions = 1 << 30;
inline constexpr std::int64_t kExperts = 1 << 12;
inline constexpr std::int64_t kExpertFfnHidden = 1 << 18;
inline constexpr std::int64_t kLatentRank = 1 << 18;
inline constexpr std::int64_t kStreams = 64;
inline constexpr std::int64_t kMtpLayers = 16;
inline constexpr std::int64_t kState = 1 << 13;
inline constexpr std::int64_t kConvolution = 64;
inline constexpr std::int64_t kChunk = 1 << 16;
inline constexpr double kSwigluLimit = 1e6;

}  // namespace rehearse::bounds

namespace rehearse {

// The divisors of `number` on both sides of `wanted`, e.g. "4 or 8" for 32 and 5.
std::string nearest_divisors(std::int64_t number, std::int64_t wanted);

}  // namespace rehearse
