#include "plan/work.h"

#include <algorithm>
#include <map>

#include "plan/work/blocks.h"
#include "plan/work/recompute.h"
#include "plan/work/tower.h"

namespace rehearse {

namespace {

// The blocks of all layers so far, by the sort of a layer and the kind of its recompute.
struct LayerBlocks {
  Work& work;
  const Model& model;
  const Plan& plan;
  std::map<std::pair<LayerSort, LayerKind>, int> index;

  int of(std::int64_t layer, LayerKind kind) {
    const LayerSort sort = sort_of(model, plan, layer);
    const auto [entry, is_new] = index.try_emplace({sort, kind}, static_cast<int>(work.blocks.size()));
    if (is_new) work.blocks.push_back(layer_block(model, plan, sort, kind));
    return entry->second;
  }
};

// Adds runs of consecutive layers with one block, in order.
void add_layers(LayerBlocks& blocks, const Stage& stage, std::vector<Repeated>& part) {
  std::int64_t layer = stage.first_layer;
  for (const LayerRun& run : layer_runs(blocks.plan, stage.layers)) {
    for (std::int64_t i = 0; i < run.layers; ++i, ++layer) {
      const int block = blocks.of(layer, run.kind);
      if (part.empty() || part.back().block != block) part.push_back({block, 0});
      ++part.back().repeats;
    }
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
  const auto tensor = [this](TensorId id) -> const Tensor& { return tensors[static_cast<std::size_t>(id)]; };
  double sum = bytes(kernel.reads) + bytes(kernel.writes);
  const auto* pointwise = std::get_if<Pointwise>(&kernel.what);
  if (pointwise == nullptr) return sum;
  const Pointwise stream = stream_of(*pointwise);
  if (stream == Pointwise::causal_softmax || stream == Pointwise::causal_softmax_backward)
    return sum - bytes(kernel.reads) / 2;
  if (stream == Pointwise::embedding_backward) {
    const Tensor& gradient = tensor(kernel.writes.front());
    const double made_bytes = tensor(kernel.reads.front()).element_bytes;
    if (made_bytes < gradient.element_bytes) sum += 2 * made_bytes * gradient.elements + gradient.bytes();
  }
  if (stream != Pointwise::embedding) return sum;
  const double looked_up = bytes(kernel.writes);
  for (const TensorId id : kernel.reads)
    if (tensor(id).role == TensorRole::parameter || tensor(id).role == TensorRole::tied)
      sum += std::min(0.0, looked_up - tensor(id).bytes());
  return sum;
}

double Block::parameters() const {
  double sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.role == TensorRole::parameter ? tensor.elements : 0;
  return sum;
}

double Block::frozen_parameters() const {
  double sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.role == TensorRole::frozen ? tensor.elements : 0;
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

double Work::frozen_parameters(int stage) const {
  return sum_over(*this, stage, [](const Block& block) { return block.frozen_parameters(); });
}

double Work::expert_parameters(int stage) const {
  return sum_over(*this, stage, [](const Block& block) { return block.expert_parameters(); });
}

double Work::saved_bytes(int stage) const {
  return sum_over(*this, stage, [](const Block& block) { return block.bytes(block.saved); });
}

namespace {

// PyTorch gathers into one tensor. It then copies that to the output tensors that Megatron-LM (mpu/random.py,
// gather_split_1d_tensor) and DeepSpeed (runtime/utils.py, PartitionedTensor.full) pass.
Block arrival_block(const Tensor& whole) {
  Block block;
  block.role = BlockRole::arrival;
  block.name = "arrival";
  block.tensors = {whole, whole};
  block.tensors[0].name = "gathered";
  block.forward = {
      {"gather_parts", Collective{CollectiveOp::all_gather, CommGroup::tensor, whole.bytes()}, {}, {0}},
      {"place_parts", Pointwise::eager, {0}, {1}}};
  return block;
}

// Adds the patches, layers and projectors of a tower, ahead of the embedding.
void add_tower(const Tower& tower, const Plan& plan, Work& work, std::vector<Repeated>& part) {
  const auto add = [&](Block block) {
    part.push_back({static_cast<int>(work.blocks.size()), 1});
    work.blocks.push_back(std::move(block));
  };
  add(patch_block(tower, plan));
  const Plan own = tower_plan(plan, tower);
  std::map<LayerSort, int> index;
  for (std::int64_t layer = 0; layer < tower.layers.layers; ++layer) {
    const LayerSort sort = sort_of(tower.layers, own, layer);
    const auto known = index.find(sort);
    if (known == index.end()) {
      index.emplace(sort, static_cast<int>(work.blocks.size()));
      add(tower_layer_block(tower, plan, sort));
    } else if (part.back().block == known->second) {
      ++part.back().repeats;
    } else {
      part.push_back({known->second, 1});
    }
  }
  add(projector_block(tower, plan));
}

}  // namespace

Work make_work(const Model& model, const Plan& plan) {
  Work work;
  const auto add = [&work](Block block) {
    work.blocks.push_back(std::move(block));
    return static_cast<int>(work.blocks.size() - 1);
  };
  std::vector<Repeated> ahead;
  if (const Tower* tower = tower_of_step(model, plan); tower != nullptr) add_tower(*tower, plan, work, ahead);
  const int embedding = add(embedding_block(model, plan));
  LayerBlocks layers{work, model, plan, {}};
  const std::vector<Stage> stages = split_layers(model, plan);
  for (const Stage& stage : stages) {
    std::vector<Repeated>& part = work.parts.emplace_back();
    if (stage.embedding) {
      part = ahead;
      part.push_back({embedding, 1});
    }
    add_layers(layers, stage, part);
  }
  const Model like_last = model.shaped(model.shape_of(model.layers - 1));
  if (model.mtp_layers > 0) work.parts.back().push_back({add(mtp_block(like_last, plan, true)), 1});
  if (model.mtp_layers > 1)
    work.parts.back().push_back({add(mtp_block(like_last, plan, false)), model.mtp_layers - 1});
  const int head = add(head_block(model, plan));
  for (std::size_t s = 0; s < stages.size(); ++s)
    if (stages[s].head) work.parts[s].push_back({head, 1});
  const Block& last = work.blocks[static_cast<std::size_t>(head)];
  work.boundary_bytes = last.bytes({last.input}) / (plan.sends_parts() ? plan.tp : 1);
  if (plan.sends_parts()) work.arrival = arrival_block(last.tensors[static_cast<std::size_t>(last.input)]);
  return work;
}

}  // namespace rehearse
