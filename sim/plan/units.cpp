#include "plan/units.h"

#include <utility>

namespace rehearse {

std::vector<double> unit_parameters(const Work& work, int stage) {
  std::vector<double> units;
  double before = 0;  // of blocks ahead of the first layer
  for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)]) {
    const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
    const double parameters = block.parameters();
    if (block.name == "embedding") {
      before += parameters;
    } else if (block.name == "head" && !units.empty()) {
      units.back() += parameters;
    } else {
      for (std::int64_t i = 0; i < part.repeats; ++i) units.push_back(parameters + std::exchange(before, 0));
    }
  }
  if (before > 0) units.push_back(before);
  return units;
}

}  // namespace rehearse
