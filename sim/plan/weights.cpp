#include "plan/weights.h"

namespace rehearse {

Weights weights_of(const Block& block) {
  constexpr double kKeptWhole = 1e5, kMaxReuseDistance = 1e9;
  Weights weights;
  double until_reuse = 0;  // elements of the weights after this one, in the forward and again in the backward
  for (auto tensor = block.tensors.rbegin(); tensor != block.tensors.rend(); ++tensor) {
    if (tensor->role != TensorRole::parameter || tensor->elements <= kKeptWhole) continue;
    ++weights.all;
    weights.dropped += !block.recompute.empty() && until_reuse >= kMaxReuseDistance;
    until_reuse += 2 * tensor->elements;
  }
  return weights;
}

}  // namespace rehearse
