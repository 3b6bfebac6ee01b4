// How much memory does PyTorch's caching allocator reserve on a pipeline rank?
//
// The rank's ops are replayed with the tensors of their blocks one by one (result/block_walk.h), as the host
// launches their kernels, through the allocator's own rules (result/caching_allocator.h). What it reserves
// beyond the most that is alive at once is lost to fragments, and to tensors that a collective may still be
// reading: their memory stays untouched until the GPU has come to where the host was when it dropped them.
#pragma once

#include "plan/work.h"
#include "result/report.h"
#include "schedule/schedule.h"

namespace rehearse {

// How a framework's host runs ahead of a GPU that is slower than it.
struct HostLead {
  // ProcessGroupNCCL calls record_stream for the tensors of a collective, unless
  // TORCH_NCCL_AVOID_RECORD_STREAMS=1 is set, as NVIDIA's launchers do and torchtitan asks for.
  bool records_streams = false;
  // The host waits for the GPU before each forward pass: it reads the sizes of a microbatch that were
  // broadcast (Megatron-LM, core/tensor_parallel/data.py, _build_key_size_numel_dictionaries).
  bool waits_before_forward = false;
  // And after each pass of a pipeline: torch.cuda.synchronize() follows batch_isend_irecv (Megatron-LM,
  // p2p_communication.py), or shapes are received first (nanotron, pipeline_parallel/p2p.py).
  bool waits_for_messages = false;
};
HostLead host_lead(const Plan& plan);

// Kernels that a stream takes before the host waits for one to end: "about 1,000" (NVIDIA's developer forum,
// topic 68937; Stack Overflow 53970187).
constexpr std::int64_t kLaunchQueue = 1024;

struct ReservedBytes {
  double allocated = 0;  // the most that is alive at once
  double reserved = 0;   // the most in segments
};

// For activations, logits, gradients of parameters that go as a backward pass ends, and late blocks, over as
// many iterations as it takes until no more is reserved, four at most. `capacity_bytes`: room for them.
ReservedBytes replay_allocations(const RankOps& ops, const RankMemory& memory, const Plan& plan,
                                 const Work& work, double capacity_bytes);

// All that is reserved on a rank with `capacity_bytes` for its allocator. What stays there for the whole run
// is allocated once and loses nothing.
double reserved_bytes(const RankOps& ops, const RankMemory& memory, const Plan& plan, const Work& work,
                      double capacity_bytes);

}  // namespace rehearse
