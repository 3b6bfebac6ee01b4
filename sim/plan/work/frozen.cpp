#include "plan/work/frozen.h"

#include <algorithm>

namespace rehearse {

void keep_backward_of(Block& block, const std::vector<TensorId>& gradients) {
  std::vector<bool> needed(block.tensors.size());
  const auto mark = [&](TensorId id) { needed[static_cast<std::size_t>(id)] = true; };
  std::ranges::for_each(gradients, mark);
  for (auto* kernels : {&block.backward_weight, &block.backward_input}) {
    std::vector<Kernel> kept;
    for (auto kernel = kernels->rbegin(); kernel != kernels->rend(); ++kernel) {
      const bool leads = std::ranges::any_of(
          kernel->writes, [&](TensorId id) { return needed[static_cast<std::size_t>(id)]; });
      if (!leads) continue;
      std::ranges::for_each(kernel->reads, mark);
      kept.push_back(std::move(*kernel));
    }
    std::ranges::reverse(kept);
    *kernels = std::move(kept);
  }
  if (!block.backward_input.empty() || !block.backward_weight.empty()) return;
  block.recompute.clear();
  block.output_gradient = -1;
}

Block frozen(Block block) {
  for (Tensor& tensor : block.tensors)
    if (tensor.role == TensorRole::parameter) tensor.role = TensorRole::frozen;
  block.input_gradient = -1;
  block.joins_previous = false;
  keep_backward_of(block, {});
  block.saved = derive_saved(block);
  return block;
}

}  // namespace rehearse
