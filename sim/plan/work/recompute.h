// Which layers of a stage are recomputed before their backward pass, and what do they keep until then?
#pragma once

#include <vector>

#include "plan/work.h"

namespace rehearse {

enum class LayerKind : std::uint8_t {
  planned,  // as plan.recompute says; with full recompute it keeps its input
  kept,     // no kernel is recomputed: the layers that block recompute excludes
  joined,   // recomputed with the layer before it, which recomputes its input
};

struct LayerRun {
  LayerKind kind = LayerKind::planned;
  std::int64_t layers = 0;
};

// The `layers` layers of one stage in forward order (Megatron-LM, transformer_block.py: uniform checkpoints
// every recompute_layers-th input; block recomputes the first recompute_layers layers of each stage).
std::vector<LayerRun> layer_runs(const Plan& plan, std::int64_t layers);

// Does selective recompute of this plan recompute the module? InternEvo drops the outputs of norms where
// nothing else is recomputed (dropout_selective_checkpoint).
bool reruns(const Plan& plan, RecomputeModule module);

// Whether full recompute includes embedding and head (Aleph Alpha's Scaling, parallel_module.py, forward: a
// checkpoint for each layer, and both count as layers).
bool reruns_ends(const Plan& plan);

// The kernels that Recompute::op recomputes, for a block whose backward kernels are listed. They are all that
// the backward kernels need except attention, sums scattered over ranks and every second GEMM, counted from
// the first: these outputs stay. Each output of a GEMM counts as a separate GEMM (torchtitan v0.2,
// distributed/activation_checkpoint.py).
std::vector<Kernel> kernels_rerun_by_op(const Block& block);

// Removes kernels from the end of `rerun` whose outputs no backward kernel of the block reads (PyTorch,
// torch/utils/checkpoint.py: _StopRecomputationError, once all saved tensors exist again).
void drop_unread_end(std::vector<Kernel>& rerun, const Block& block);

}  // namespace rehearse
