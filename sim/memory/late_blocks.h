// Which blocks does a rank allocate after the activations of its microbatches are released?
//
// Most of them are larger than any activation, so no free block holds them. PyTorch's allocator reserves them
// beside the activations (c10/cuda/CUDACachingAllocator.cpp, get_free_block).
#pragma once

#include <vector>

#include "memory/rank_memory.h"
#include "plan/plan.h"
#include "plan/work.h"

namespace rehearse {

using LateBlocks = std::vector<double>;  // bytes of blocks that are live together

// In the order of an iteration, one after the other:
// - Megatron-LM of 2021: all gradients side by side (has_local_ddp() in recipe.h), and the original gradients
//   if the backward pass allocated them.
// - DeepSpeed's ZeRO-1 (runtime/zero/stage_1_and_2.py of February 2022; Megatron-LM of 2021 has ZeRO-1 from
//   there): The gradients of a bucket side by side (allreduce_bucket). In fp16 the largest gradient of the
//   rank's share in fp32, to find infinities (_has_inf_or_nan). The share's gradients side by side (step).
//   The output of torch.distributed.all_gather for the shares of a bucket of parameters.
// - DeepSpeed's BF16_Optimizer: the gradient of the largest parameter in fp32 (runtime/bf16_optimizer.py,
//   update_hp_grads). The fp32 gradients of a bucket side by side (runtime/engine.py of April 2022,
//   allreduce_bucket).
// - nanotron's ZeRO-1: each rank's share of the parameters side by side, and all of them once more in
//   all_gather (distributed.py, all_gather_coalesced; optim/zero.py, _all_gather_params)
std::vector<LateBlocks> late_blocks(const RankMemory& memory, const Plan& plan, const Work& work);

// Bytes of the largest of these groups of blocks.
double most_late_bytes(const RankMemory& memory, const Plan& plan, const Work& work);

}  // namespace rehearse
