#include "plan/units.h"

#include <utility>

namespace rehearse {

namespace {

void join(Unit& unit, const Unit& other) {
  unit.dense += other.dense;
  unit.experts += other.experts;
  unit.frozen += other.frozen;
  unit.weights += other.weights;
}

}  // namespace

std::vector<Unit> units(const Work& work, int stage) {
  std::vector<Unit> units;
  Unit before;  // blocks ahead of the first layer
  for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)]) {
    const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
    const double experts = block.expert_parameters(), dense = block.parameters() - experts;
    const Unit own{dense, experts, block.frozen_parameters(), weights_of(block)};
    if (block.role == BlockRole::embedding) {
      join(before, own);
    } else if (block.role == BlockRole::head && !units.empty()) {
      join(units.back(), own);
    } else {
      for (std::int64_t i = 0; i < part.repeats; ++i) {
        units.push_back(std::exchange(before, {}));
        join(units.back(), own);
      }
    }
  }
  if (before.total() > 0) units.push_back(before);
  return units;
}

std::vector<std::vector<Weights>> unit_weights(const Work& work) {
  std::vector<std::vector<Weights>> weights(work.parts.size());
  for (std::size_t stage = 0; stage < weights.size(); ++stage)
    for (const Unit& unit : units(work, static_cast<int>(stage))) weights[stage].push_back(unit.weights);
  return weights;
}

}  // namespace rehearse
