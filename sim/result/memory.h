// How many bytes does one GPU of each pipeline rank hold at its fullest moment?
//
// Counted: parameters, gradients, optimizer state, activations that a forward leaves for its backward, one
// recomputed layer, logits, messages in flight. Not counted: workspaces of single kernels, the allocator's
// slack, the CUDA context.
#pragma once

#include <vector>

#include "result/report.h"

namespace rehearse {

// Bytes of state for each parameter, in mixed precision as Megatron-LM keeps it: bf16 or fp16 weight,
// gradient in plan.gradient_bytes (2: as Rajbhandari et al. 2020, section 3.1; 4: Megatron-LM's fp32
// accumulator; 6: both), fp32 master weight and Adam's two moments. fp8 keeps bf16 weights.
struct StateBytes {
  double parameter = 2, gradient = 4, optimizer = 12;
};
StateBytes state_bytes(const Plan& plan);

// The same summed over `parameters` of one rank and divided among the ranks that share it, without what lies
// on the host (Rajbhandari et al. 2020, section 5 and table 1; Ren et al. 2021, section 3).
StateBytes held_state(double parameters, const Plan& plan);

// Gathered units beside the shard, and gradients on their way to where they are kept.
double sharding_buffers(int pipeline_rank, const Plan& plan, const Work& work);

// Bytes of one microbatch on a stage.
struct StageActivations {
  double saved = 0;       // from forward to backward, without the logits
  double logits = 0;      // the part of what is saved that the loss keeps: logits or their softmax
  double recomputed = 0;  // one layer's tensors that the backward pass makes anew while it runs
};
std::vector<StageActivations> stage_activations(const Work& work);

// One entry for each pipeline rank. Activations are replayed in the order of its compute stream: they come
// with a forward and go with the end of its backward (of its W where the backward is split).
std::vector<RankMemory> rank_memory(const Schedule& schedule, const Plan& plan, const Work& work);

// Bytes of activations and logits from `time_s` on.
struct MemoryPoint {
  double time_s = 0;
  double bytes = 0;
};
std::vector<MemoryPoint> activation_curve(const TimelineRank& rank, const RankOps& ops,
                                          const std::vector<StageActivations>& stages);

}  // namespace rehearse
