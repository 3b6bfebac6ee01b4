// How much memory does PyTorch's caching allocator reserve on a pipeline rank?
//
// The rank's ops are replayed with the tensors of their blocks one by one (memory/block_walk.h), as
// the host launches their kernels, through the allocator's own rules (memory/caching_allocator.h).
// What it reserves beyond the most that is alive at once is lost to fragments, and to tensors that a
// collective may still be reading: their memory stays untouched until the GPU has come to where the host was
// when it dropped them.
#pragma once

#include <limits>

#include "memory/rank_memory.h"
#include "plan/plan.h"
#include "plan/work.h"
#include "schedule/schedule.h"

namespace rehearse {

// What a framework does that decides how much is reserved. Its host runs ahead of the GPU wherever it does
// not wait for it.
struct MemoryHabits {
  // ProcessGroupNCCL calls record_stream for the tensors of a collective, unless
  // TORCH_NCCL_AVOID_RECORD_STREAMS=1 is set, as NVIDIA's launchers do and torchtitan asks for.
  bool records_streams = false;
  // The host waits for the GPU before each forward pass: it reads the sizes of a microbatch that were
  // broadcast (Megatron-LM, core/tensor_parallel/data.py, _build_key_size_numel_dictionaries).
  bool waits_before_forward = false;
  // And after each pass: the timers around it call torch.cuda.synchronize() (Megatron-LM of 2021,
  // megatron/global_vars.py, _Timer), or the next one receives the shapes of its input first (nanotron,
  // pipeline_parallel/p2p.py).
  bool waits_after_pass = false;
  // What tensor-parallel ranks gather lies in buffers that stay, one for all layers' inputs (Megatron-LM,
  // core/tensor_parallel/layers.py, get_global_memory_buffer) and, in nanotron, one for the gradients of
  // their outputs (tensor_parallel/functional.py, MemoryBuffer).
  int gather_buffers = 0;
  // CUDA_DEVICE_MAX_CONNECTIONS=1, which nanotron asks for: events and kernels of all streams share a queue.
  bool shares_queue = false;
};
MemoryHabits memory_habits(const Plan& plan);

// Kernels that a stream takes before the host waits for one to end: "about 1,000" (NVIDIA's developer forum,
// topic 68937; Stack Overflow 53970187).
constexpr std::int64_t kLaunchQueue = 1024;

struct ReservedBytes {
  double allocated = 0;  // the most that is alive at once
  double reserved = 0;   // the most in segments
};

constexpr std::int64_t kAllMicrobatches = std::numeric_limits<std::int64_t>::max();

// For activations, logits, gradients of parameters that go as a backward pass ends, and late blocks, over as
// many iterations as it takes until no more is reserved, four at most. `capacity_bytes`: room for them.
// `microbatches`: so many are replayed, the first ones; where an order goes on alike, a few rounds are enough
// (shortened() in sizing.h).
ReservedBytes replay_allocations(const RankOps& ops, const RankMemory& memory, const Plan& plan,
                                 const Work& work, double capacity_bytes,
                                 std::int64_t microbatches = kAllMicrobatches);

// All that is reserved on a rank with `capacity_bytes` for its allocator. What stays there for the whole run
// is allocated once and loses nothing.
double reserved_bytes(const RankOps& ops, const RankMemory& memory, const Plan& plan, const Work& work,
                      double capacity_bytes, std::int64_t microbatches = kAllMicrobatches);

}  // namespace rehearse
