// Which legal values are nearest to an illegal one? They are the "nearest legal" part of error messages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rehearse {

// Legal values on both sides of an illegal one, the nearest first; `below` may hold the value itself.
struct Near {
  std::vector<std::int64_t> below, above;
};

// Numbers in [1, most], at most `reach` away; only a few on each side.
Near numbers_around(std::int64_t wanted, std::int64_t most, const std::function<bool(std::int64_t)>& legal,
                    std::int64_t reach = 100'000);

// The same for multiples of `unit` >= 1, at any distance.
Near multiples_around(std::int64_t wanted, std::int64_t most, std::int64_t unit);

// The closest on either side, as "5 or 8"; empty without any.
std::string in_words(const Near& near);

}  // namespace rehearse
