#include "plan/rules/nearest.h"

#include <algorithm>

#include "base/error.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxOfASide = 8;

}  // namespace

Near numbers_around(std::int64_t wanted, std::int64_t most, const std::function<bool(std::int64_t)>& legal,
                    std::int64_t reach) {
  Near near;
  const std::int64_t least = std::max<std::int64_t>(1, wanted - reach);
  for (std::int64_t value = std::min(wanted, most); value >= least && near.below.size() < kMaxOfASide;
       --value)
    if (legal(value)) near.below.push_back(value);
  const std::int64_t last = std::min(most, wanted + reach);
  for (std::int64_t value = std::max<std::int64_t>(wanted + 1, 1);
       value <= last && near.above.size() < kMaxOfASide; ++value)
    if (legal(value)) near.above.push_back(value);
  return near;
}

Near multiples_around(std::int64_t wanted, std::int64_t most, std::int64_t unit) {
  Near near;
  const std::int64_t first = std::clamp<std::int64_t>(wanted, 0, most) / unit;
  for (std::int64_t times = first; times > 0 && near.below.size() < kMaxOfASide; --times)
    near.below.push_back(times * unit);
  if (wanted >= most) return near;
  for (std::int64_t times = first + 1; times <= most / unit && near.above.size() < kMaxOfASide; ++times)
    near.above.push_back(times * unit);
  return near;
}

std::string in_words(const Near& near) {
  std::vector<std::string> found;
  for (const std::vector<std::int64_t>* side : {&near.below, &near.above})
    if (!side->empty()) found.push_back(std::to_string(side->front()));
  return join(found, " or ");
}

}  // namespace rehearse
