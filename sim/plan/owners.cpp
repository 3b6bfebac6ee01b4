#include "plan/owners.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "plan/sharding.h"

namespace rehearse {

namespace {

std::vector<double> dense_parameters(const Work& work, int stage) {
  std::vector<double> parameters;
  for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)]) {
    for (const Tensor& tensor : work.blocks[static_cast<std::size_t>(part.block)].tensors) {
      if (tensor.role != TensorRole::parameter || tensor.of_experts) continue;
      parameters.insert(parameters.end(), static_cast<std::size_t>(part.repeats * tensor.matrices),
                        tensor.elements / tensor.matrices);
    }
  }
  return parameters;
}

}  // namespace

std::vector<double> owned_elements(std::vector<double> parameters, int ranks) {
  std::ranges::sort(parameters, std::greater());
  using Owner = std::pair<double, int>;  // elements, rank
  std::priority_queue<Owner, std::vector<Owner>, std::greater<>> least;
  for (int rank = 0; rank < ranks; ++rank) least.emplace(0, rank);
  std::vector<double> owned(static_cast<std::size_t>(ranks), 0);
  for (const double elements : parameters) {
    const int rank = least.top().second;
    least.pop();
    least.emplace(owned[static_cast<std::size_t>(rank)] += elements, rank);
  }
  return owned;
}

std::vector<double> owned_elements(const Work& work, const Plan& plan, int stage) {
  return owned_elements(dense_parameters(work, stage), shard_size(plan));
}

double stepped_experts(const Work& work, const Plan& plan, int stage) {
  return work.expert_parameters(stage) / expert_shard_size(plan);
}

double stepped_dense(const Work& work, const Plan& plan, int stage) {
  if (owns_parameters(plan)) return std::ranges::max(owned_elements(work, plan, stage));
  return (work.parameters(stage) - work.expert_parameters(stage)) / shard_size(plan);
}

}  // namespace rehearse
