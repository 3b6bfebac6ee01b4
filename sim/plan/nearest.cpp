#include "plan/nearest.h"

#include <algorithm>

#include "base/error.h"

namespace rehearse {

std::string nearest_legal(std::int64_t wanted, std::int64_t most,
                          const std::function<bool(std::int64_t)>& legal, std::int64_t reach) {
  std::vector<std::string> found;
  for (std::int64_t value = std::min(wanted, most); value >= std::max<std::int64_t>(1, wanted - reach);
       --value) {
    if (legal(value)) {
      found.push_back(std::to_string(value));
      break;
    }
  }
  for (std::int64_t value = std::max<std::int64_t>(wanted + 1, 1); value <= std::min(most, wanted + reach);
       ++value) {
    if (legal(value)) {
      found.push_back(std::to_string(value));
      break;
    }
  }
  return found.empty() ? "none" : join(found, " or ");
}

std::string nearest_multiples(std::int64_t wanted, std::int64_t most, std::int64_t unit) {
  const std::int64_t below = std::clamp<std::int64_t>(wanted, 0, most) / unit;
  std::vector<std::string> found;
  if (below > 0) found.push_back(std::to_string(below * unit));
  if (wanted < most && below < most / unit) found.push_back(std::to_string((below + 1) * unit));
  return found.empty() ? "none" : join(found, " or ");
}

}  // namespace rehearse
