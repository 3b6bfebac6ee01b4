#include "plan/work.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "plan/work/blocks.h"
#include "plan/work/recompute.h"

namespace rehearse {

namespace {

enum : int { kEmbedding, kLayer, kHead };  // indices into Work::blocks

void require_priceable(const Model& model) {
  std::vector<Violation> violations;
  if (model.experts) {
    violations.push_back(
        {model.name, "", "sparse layers (mixture of experts) are priced in a later version",
         fmt::format("{} experts of which a token visits {}", model.experts->count, model.experts->per_token),
         "a model without experts"});
  }
  if (model.latent) {
    violations.push_back({model.name, "", "multi-head latent attention is priced in a later version",
                          fmt::format("key and value rank {}", model.latent->kv_rank),
                          "a model with multi-head or grouped-query attention"});
  }
  if (!violations.empty()) throw InputError(std::move(violations));
}

// Index of the layers' block of this kind; made when first asked for.
int layer_of(Work& work, const Model& model, const Plan& plan, LayerKind kind) {
  if (kind == LayerKind::planned) return kLayer;
  const Block block = layer_block(model, plan, kind);
  for (std::size_t i = kHead; i < work.blocks.size(); ++i)
    if (work.blocks[i].name == block.name) return static_cast<int>(i);
  work.blocks.push_back(block);
  return static_cast<int>(work.blocks.size() - 1);
}

std::vector<Repeated> part_of(Work& work, const Model& model, const Plan& plan, const Stage& stage) {
  std::vector<Repeated> part;
  if (stage.embedding) part.push_back({kEmbedding, 1});
  for (const LayerRun& run : layer_runs(plan, stage.layers))
    part.push_back({layer_of(work, model, plan, run.kind), run.layers});
  if (stage.head) part.push_back({kHead, 1});
  return part;
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

double Work::parameters(int stage) const {
  return sum_over(*this, stage, [](const Block& block) { return block.parameters(); });
}

double Work::saved_bytes(int stage) const {
  return sum_over(*this, stage, [](const Block& block) { return block.bytes(block.saved); });
}

Work make_work(const Model& model, const Plan& plan) {
  require_priceable(model);
  Work work;
  work.blocks = {embedding_block(model, plan), layer_block(model, plan), head_block(model, plan)};
  for (const Stage& stage : split_layers(model, plan))
    work.parts.push_back(part_of(work, model, plan, stage));
  const Block& layer = work.blocks[kLayer];
  work.boundary_bytes = layer.bytes({layer.input});
  return work;
}

}  // namespace rehearse
