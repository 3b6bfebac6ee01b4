// Which layers of a stage run again before their backward pass, and what do they keep until then?
#pragma once

#include <vector>

#include "plan/work.h"

namespace rehearse {

enum class LayerKind : std::uint8_t {
  planned,  // as plan.recompute says; with full recompute it keeps its input
  kept,     // no kernel runs again: the layers that block recompute leaves alone
  joined,   // runs again with the layer before it, which makes its input anew
};

struct LayerRun {
  LayerKind kind = LayerKind::planned;
  std::int64_t layers = 0;
};

// The `layers` layers of one stage in forward order (Megatron-LM, transformer_block.py: uniform checkpoints
// every recompute_layers-th input; block recomputes the first recompute_layers layers of each stage).
std::vector<LayerRun> layer_runs(const Plan& plan, std::int64_t layers);

// Does selective recompute of this plan run the module again? InternEvo drops what norms make where nothing
// else is recomputed (dropout_selective_checkpoint).
bool reruns(const Plan& plan, RecomputeModule module);

// Whether full recompute runs embedding and head again, too (Aleph Alpha's Scaling, parallel_module.py,
// forward: a checkpoint for each layer, of which these are two).
bool reruns_ends(const Plan& plan);

// What runs again under Recompute::op, of a block whose backward kernels are listed: all that they need but
// attention, sums scattered over ranks and every second GEMM, counted from the first, which stay. Each
// output of a product counts as a product of its own (torchtitan v0.2, distributed/activation_checkpoint.py).
std::vector<Kernel> kernels_rerun_by_op(const Block& block);

// Takes those kernels from the end of `rerun` whose outputs no backward kernel of the block reads (PyTorch,
// torch/utils/checkpoint.py: _StopRecomputationError, once all that was saved is there again).
void drop_unread_end(std::vector<Kernel>& rerun, const Block& block);

}  // namespace rehearse
