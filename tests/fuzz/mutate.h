// How does a well-formed input become a hostile one?
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace rehearse::fuzz {

using Random = std::mt19937_64;

// Applies one to four changes:
// - bits flipped; bytes removed, doubled or moved;
// - the end cut off or replaced by that of `other`;
// - a number replaced by a hostile one (0, -1, 2^63, 1e308, nan, ...);
// - a word replaced by another word of either.
// The result has at most `most` bytes. The same random numbers make the same changes.
std::string mutate(std::string unit, const std::string& other, std::size_t most, Random& random);

}  // namespace rehearse::fuzz
