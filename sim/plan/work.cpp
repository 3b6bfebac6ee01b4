#include "plan/work.h"

#include <algorithm>
#include <map>

#include "plan/work/blocks.h"

namespace rehearse {

namespace {

// Runs of consecutive layers of one kind, in order.
void add_layers(const Model& model, const Stage& stage, const std::map<bool, int>& layer_blocks,
                std::vector<Repeated>& part) {
  for (std::int64_t layer = stage.first_layer; layer < stage.first_layer + stage.layers; ++layer) {
    const int block = layer_blocks.at(model.is_sparse(layer));
    if (part.empty() || part.back().block != block) part.push_back({block, 0});
    ++part.back().repeats;
  }
}

template <typename PerBlock>
double sum_over(const Work& work, int stage, const PerBlock& per_block) {
  double sum = 0;
  for (const Repeated& repeated : work.parts[static_cast<std::size_t>(stage)]) {
    const Block& block = work.blocks[static_cast<std::size_t>(repeated.block)];
    sum += static_cast<double>(repeated.repeats) * per_block(block);
  }
  return sum;
}

}  // namespace

double Block::bytes(const std::vector<TensorId>& ids) const {
  double sum = 0;
  for (const TensorId id : ids) sum += tensors[static_cast<std::size_t>(id)].bytes();
  return sum;
}

double Block::bytes_moved(const Kernel& kernel) const {
  double sum = bytes(kernel.reads) + bytes(kernel.writes);
  const auto* pointwise = std::get_if<Pointwise>(&kernel.what);
  if (pointwise == nullptr || *pointwise != Pointwise::embedding) return sum;
  const double looked_up = bytes(kernel.writes);
  for (const TensorId id : kernel.reads) {
    const Tensor& tensor = tensors[static_cast<std::size_t>(id)];
    if (tensor.role == TensorRole::parameter) sum += std::min(0.0, looked_up - tensor.bytes());
  }
  return sum;
}

double Block::parameters() const {
  double sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.role == TensorRole::parameter ? tensor.elements : 0;
  return sum;
}

double Block::expert_parameters() const {
  double sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.of_experts ? tensor.elements : 0;
  return sum;
}

double Work::parameters(int stage) const {
  return sum_over(*this, stage, [](const Block& block) { return block.parameters(); });
}

double Work::expert_parameters(int stage) const {
  return sum_over(*this, stage, [](const Block& block) { return block.expert_parameters(); });
}

double Work::saved_bytes(int stage) const {
  return sum_over(*this, stage, [](const Block& block) { return block.bytes(block.saved); });
}

Work make_work(const Model& model, const Plan& plan) {
  Work work;
  const auto add = [&work](Block block) {
    work.blocks.push_back(std::move(block));
    return static_cast<int>(work.blocks.size() - 1);
  };
  const int embedding = add(embedding_block(model, plan));
  std::map<bool, int> layer_blocks;  // by whether the layer is sparse
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const bool sparse = model.is_sparse(layer);
    if (!layer_blocks.contains(sparse)) layer_blocks[sparse] = add(layer_block(model, plan, sparse));
  }
  const int head = add(head_block(model, plan));
  for (const Stage& stage : split_layers(model, plan)) {
    std::vector<Repeated>& part = work.parts.emplace_back();
    if (stage.embedding) part.push_back({embedding, 1});
    add_layers(model, stage, layer_blocks, part);
    if (stage.head) part.push_back({head, 1});
  }
  const Block& last = work.blocks[static_cast<std::size_t>(head)];
  work.boundary_bytes = last.bytes({last.input});
  return work;
}

}  // namespace rehearse
