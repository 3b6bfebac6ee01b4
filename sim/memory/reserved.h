// How much memory does PyTorch's caching allocator reserve on a pipeline rank?
//
// The rank's ops are replayed with the tensors of their blocks one by one (memory/block_walk.h), as the host
// launches their kernels. The replay follows the allocator's own rules (memory/caching_allocator.h). Reserved
// memory beyond the peak of live tensors has two causes. One is fragments. The other is tensors that a
// collective may still be reading: their memory is not reused until the GPU has reached the point where the
// host released them.
#pragma once

#include <limits>

#include "memory/rank_memory.h"
#include "plan/plan.h"
#include "plan/work.h"
#include "schedule/schedule.h"

namespace rehearse {

// Habits of a framework that decide how much memory is reserved. Its host runs ahead of the GPU wherever it
// does not wait for it.
struct MemoryHabits {
  // ProcessGroupNCCL calls record_stream for the tensors of a collective, unless
  // TORCH_NCCL_AVOID_RECORD_STREAMS=1 is set, as NVIDIA's launchers do and torchtitan asks for.
  bool records_streams = false;
  // The host waits for the GPU before each forward pass, because it reads the broadcast sizes of a microbatch
  // (Megatron-LM, core/tensor_parallel/data.py, _build_key_size_numel_dictionaries).
  bool waits_before_forward = false;
  // The host also waits after each pass. Either the timers around the pass call torch.cuda.synchronize()
  // (Megatron-LM of 2021, megatron/global_vars.py, _Timer). Or the next pass first receives the shapes of its
  // input (nanotron, pipeline_parallel/p2p.py).
  bool waits_after_pass = false;
  // Buffers that stay and hold tensors gathered by tensor-parallel ranks. One is for the inputs of all layers
  // (Megatron-LM, core/tensor_parallel/layers.py, get_global_memory_buffer). In nanotron another is for the
  // gradients of their outputs (tensor_parallel/functional.py, MemoryBuffer).
  int gather_buffers = 0;
  // CUDA_DEVICE_MAX_CONNECTIONS=1, which nanotron asks for: events and kernels of all streams share a queue.
  bool shares_queue = false;
};
MemoryHabits memory_habits(const Plan& plan);

// Kernels that a stream accepts before the host must wait: "about 1,000" (NVIDIA's developer forum, topic
// 68937; Stack Overflow 53970187).
constexpr std::int64_t kLaunchQueue = 1024;

struct ReservedBytes {
  double allocated = 0;  // peak of live bytes
  double reserved = 0;   // peak of bytes in segments
};

constexpr std::int64_t kAllMicrobatches = std::numeric_limits<std::int64_t>::max();

// Covers activations, logits, parameter gradients that are released as a backward pass ends, and late blocks.
// Iterations repeat until no more is reserved, four at most. `capacity_bytes`: room for these tensors.
// `microbatches`: the first so many are replayed. Where an order is periodic, a few rounds are enough
// (shortened() in sizing.h).
ReservedBytes replay_allocations(const RankOps& ops, const RankMemory& memory, const Plan& plan,
                                 const Work& work, double capacity_bytes,
                                 std::int64_t microbatches = kAllMicrobatches);

// All memory reserved on a rank whose allocator has `capacity_bytes`. Tensors that stay for the whole run are
// allocated once and lose nothing.
double reserved_bytes(const RankOps& ops, const RankMemory& memory, const Plan& plan, const Work& work,
                      double capacity_bytes, std::int64_t microbatches = kAllMicrobatches);

}  // namespace rehearse
