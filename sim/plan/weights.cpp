#include "plan/weights.h"

#include "plan/frameworks/traits.h"

namespace rehearse {

Weights weights_of(const Block& block) {
  constexpr double kKeptWhole = 1e5, kMaxReuseDistance = 1e9;
  Weights weights;
  double until_reuse = 0;  // elements of the weights after this one, in the forward and again in the backward
  double bucket = 0;       // elements whose gradients wait
  for (auto tensor = block.tensors.rbegin(); tensor != block.tensors.rend(); ++tensor) {
    if (tensor->role != TensorRole::parameter) continue;
    if (tensor->elements <= kKeptWhole) {
      ++weights.kept;
      continue;
    }
    const bool begins = bucket == 0 || bucket + tensor->elements > kDeepSpeedBucketElements;
    weights.buckets += begins;
    bucket = (begins ? 0 : bucket) + tensor->elements;
    ++weights.all;
    weights.bytes += tensor->bytes();
    weights.largest = std::max(weights.largest, tensor->elements);
    weights.dropped += !block.recompute.empty() && until_reuse >= kMaxReuseDistance;
    until_reuse += 2 * tensor->elements;
  }
  if (weights.kept > 0) weights.buckets = std::max(1, weights.buckets);
  return weights;
}

}  // namespace rehearse
