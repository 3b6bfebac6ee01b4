#include "model/bounds.h"

#include <fmt/core.h>

namespace rehearse {

std::string nearest_divisors(std::int64_t number, std::int64_t wanted) {
  std::int64_t below = 0;
  std::int64_t above = 0;
  for (std::int64_t divisor = 1; divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    if (divisor <= wanted) below = divisor;
    if (divisor >= wanted && above == 0) above = divisor;
  }
  if (below == 0 && above == 0) return "";
  if (below == 0 || above == 0 || below == above) return fmt::format("{}", below == 0 ? above : below);
  return fmt::format("{} or {}", below, above);
}

}  // namespace rehearse
