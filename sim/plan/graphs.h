// Which kernels of a layer does a pass launch as one CUDA graph, and which one by one?
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace rehearse {

// The parts of a layer that Megatron core's --cuda-graph-modules distinguish.
enum class LayerPart : std::uint8_t {
  none,  // embedding, head and loss
  attention,
  mamba,
  mlp,       // of a dense layer
  router,    // of a sparse layer, with the norm before it and the shared experts
  dispatch,  // from the router to the dispatch of its rows
  experts
};

// By LayerPart: whether it is inside a graph. All false where the plan has no graphs, or graphs of whole
// passes.
using GraphedParts = std::array<bool, 7>;
GraphedParts graphed_parts(const Plan& plan);

// Adds Megatron core's conditions on modules (core/transformer/transformer_config.py, __post_init__).
void add_graph_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& violations);

}  // namespace rehearse
