// Which legal values lie nearest to an illegal one? For the "nearest legal" part of error messages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rehearse {

// The closest value below and above `wanted` in [1, most] for which `legal` holds, as "5 or 8"; "none"
// without any. Looks at most `reach` values away in each direction.
std::string nearest_legal(std::int64_t wanted, std::int64_t most,
                          const std::function<bool(std::int64_t)>& legal, std::int64_t reach = 100000);

// The same for the multiples of `unit` >= 1, however far away.
std::string nearest_multiples(std::int64_t wanted, std::int64_t most, std::int64_t unit);

}  // namespace rehearse
