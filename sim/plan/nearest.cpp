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

}  // namespace rehearse
