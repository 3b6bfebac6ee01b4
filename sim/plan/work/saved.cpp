#include <vector>

#include "plan/work.h"

namespace rehearse {

namespace {

using Marks = std::vector<bool>;  // by tensor

void mark(Marks& marks, const std::vector<TensorId>& ids) {
  for (const TensorId id : ids) marks[static_cast<std::size_t>(id)] = true;
}

Marks written_by(const Block& block, const std::vector<Kernel>& kernels) {
  Marks written(block.tensors.size());
  for (const Kernel& kernel : kernels) mark(written, kernel.writes);
  return written;
}

}  // namespace

std::vector<TensorId> derive_saved(const Block& block) {
  const Marks made_again = written_by(block, block.recompute);
  Marks before_backward = written_by(block, block.forward);
  Marks read_later(block.tensors.size());
  for (const auto* kernels : {&block.recompute, &block.backward_input, &block.backward_weight}) {
    for (const Kernel& kernel : *kernels) mark(read_later, kernel.reads);
  }
  std::vector<TensorId> saved;
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    if (block.tensors[i].role == TensorRole::input) before_backward[i] = !block.joins_previous;
    if (before_backward[i] && read_later[i] && !made_again[i]) saved.push_back(static_cast<TensorId>(i));
  }
  return saved;
}

}  // namespace rehearse
