// How many bytes does one GPU of each pipeline rank hold: at the peak, item by item, and over time?
//
// Counted: memory from PyTorch's allocator - parameters, gradients, optimizer state, activations, logits,
// messages in flight, cuBLAS's workspace. Reported separately: the CUDA context and NCCL's own buffers
// outside the allocator (cost/communicators.h), and reserved memory (memory/reserved.h).
#pragma once

#include <optional>
#include <vector>

#include "memory/lifetimes.h"
#include "memory/rank_memory.h"
#include "plan/plan.h"
#include "plan/recipe.h"
#include "schedule/schedule.h"

namespace rehearse {

// Bytes of GEMM workspace of one stream: 32 MiB from Hopper on, 8.125 MiB before (PyTorch's CUDA notes,
// cuBLAS workspaces: :4096:8 and :4096:2:16:8).
double gemm_workspace_bytes(bool hopper_or_later);

// Bytes of state on one rank for `dense` parameters and those of experts. State is divided among the ranks
// that share it, without the part on the host (Rajbhandari et al. 2020, section 5 and table 1; Ren et al.
// 2021, section 3). `stepped`: the dense parameters that the rank updates, where shares are uneven.
StateBytes held_state(double dense, double experts, const Plan& plan, std::optional<double> stepped = {});

// Gathered units beside the shard, and gradients on their way to where they are kept.
double sharding_buffers(int pipeline_rank, const Plan& plan, const Work& work);

// Bytes of the quantized copies that Transformer Engine keeps of 16-bit weights. It casts the weights in a
// step's first forward pass and keeps the copies for the rest of the step (module/base.py,
// get_weight_workspace). Megatron core tells it which pass is the first.
double cast_weights_bytes(int pipeline_rank, const Plan& plan, const Work& work);

// One entry for each pipeline rank: its peak by item. Activations are replayed in the order of its compute
// stream. They are allocated in a forward and released at the end of its backward (of its W where the
// backward is split).
std::vector<RankMemory> rank_memory(const Schedule& schedule, const Plan& plan, const Work& work,
                                    double workspace_bytes = 0);

// rank_memory() in two parts, for a search of plans. The first part does not depend on how state is sharded;
// peak_bytes is then still 0, and `alive` empty. The second part adds the state.
std::vector<RankMemory> activation_memory(const Schedule& schedule, const Plan& plan, const Work& work,
                                          const std::vector<StageBytes>& stages);
void add_state(RankMemory& memory, const Plan& plan, const Work& work, double workspace_bytes);

}  // namespace rehearse
