#include "base/bounds.h"

#include <fmt/core.h>

namespace rehearse {

std::string to_string(const Bounds& bounds) {
  return fmt::format("{}from {} to {}", bounds.or_zero ? "0, or " : "",
                     format_quantity(bounds.least, bounds.dimension),
                     format_quantity(bounds.most, bounds.dimension));
}

std::string nearest_bound(const Bounds& bounds, double value) {
  return format_quantity(value > bounds.most ? bounds.most : bounds.least, bounds.dimension);
}

}  // namespace rehearse
