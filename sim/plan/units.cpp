#include "plan/units.h"

#include <utility>

namespace rehearse {

std::vector<Unit> units(const Work& work, int stage) {
  std::vector<Unit> units;
  double before = 0;  // of blocks ahead of the first layer
  for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)]) {
    const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
    const double experts = block.expert_parameters(), dense = block.parameters() - experts;
    if (block.name == "embedding") {
      before += dense;
    } else if (block.name == "head" && !units.empty()) {
      units.back().dense += dense;
    } else {
      for (std::int64_t i = 0; i < part.repeats; ++i)
        units.push_back({dense + std::exchange(before, 0), experts});
    }
  }
  if (before > 0) units.push_back({before, 0});
  return units;
}

}  // namespace rehearse
