// Which ranks divide which piece of the model state, and what do they put on the wire for it?
//
// Rajbhandari et al. 2020 (ZeRO), sections 5 and 7; sharding inside groups only: Zhao et al. 2023 (PyTorch
// FSDP), section 3.2.2.
#pragma once

#include "plan/plan.h"

namespace rehearse {

// Over how many of the ranks that hold the same parameters each piece is divided; 1: every rank holds all.
struct Sharding {
  int parameters = 1;
  int gradients = 1;
  int optimizer = 1;
};
Sharding sharding(const Plan& plan);
Sharding expert_sharding(const Plan& plan);  // of what Plan::edp() ranks hold in common

// Ranks of one sharding group, dp x cp where there is but one; 1 without ZeRO.
int shard_size(const Plan& plan);
int expert_shard_size(const Plan& plan);  // as expert_sharding()

// Sharding groups that hold the same state and sum their gradients; 1 without ZeRO.
int shard_replicas(const Plan& plan);

// Whether each microbatch's backward ends with a reduction of its own: gradients cannot be added up where
// they are not kept.
bool reduces_each_microbatch(const Plan& plan);

// ZeRO-3 that keeps whole after the forward pass what it gathered: whether the backward pass drops it, so
// that the next microbatch gathers it again. FSDP2 does (_fsdp_param_group.py, post_backward), unless a
// pipeline's stage tells it not to before the last microbatch (torch/distributed/pipelining/stage.py,
// backward_maybe_with_nosync); FSDP1's SHARD_GRAD_OP does after a backward pass that reduces
// (_runtime_utils.py, _should_free_in_backward).
bool drops_after_backward(const Plan& plan);

// Whether each microbatch gathers the parameters, or all of a step share what is gathered once.
bool gathers_each_microbatch(const Plan& plan);

// Whether parameters are gathered unit by unit, or a stage's all at once when they have been stepped.
bool gathers_by_unit(const Plan& plan);

// Whether each parameter of a sharding group belongs to one rank of it, which steps it and broadcasts it: the
// ZeRO-1 of InternEvo (internlm/solver/optimizer/hybrid_zero_optim.py; plan/owners.h says which). Those of
// experts are divided evenly nonetheless.
bool owns_parameters(const Plan& plan);

// Whether REDUCE_GRAD leaves each rank of a sharding group its part of the sums alone. Owners all-reduce:
// over several groups, what that moves is priced as scattered in each and summed across. So does nanotron's
// ZeRO-1 (trainer.py, training_step: sync_gradients_across_dp with reduce_scatter=False), that of Aleph
// Alpha's Scaling (core/optimizer/optimizer.py, step: allreduce_gradients), and ZeRO-3 of DeepSpeed of 2021
// unless contiguous_gradients was set, which it was not by default (stage3.py, reduce_ipg_grads:
// buffered_reduce_fallback).
bool scatters_gradients(const Plan& plan);

// Whether each weight is gathered by itself, as a list with a tensor for every rank, and the parameters too
// small for that once a step: ZeRO-3 of DeepSpeed until July 2021 (deepspeed/runtime/zero/
// partition_parameters.py, _allgather_param, _allgather_params).
bool exchanges_lists(const Plan& plan);

// Bytes that copies of PyTorch's FSDP read and write beside the kernels of a microbatch, for each element of
// what is gathered or reduced. FSDP2 copies what it gathered into the parameters and gradients into the
// buffer that it reduces (_fsdp_collectives.py: split_with_sizes_copy, chunk_cat); FSDP1 gathers in place,
// puts the gradient of a flat parameter together from those of its views, casts it and divides it by a part
// of the ranks
// (_runtime_utils.py, _post_backward_hook; _comm_hooks: reduce_scatter_hook). Zero for other frameworks.
struct Copies {
  double gather = 0;
  double reduce = 0;
};
Copies copies(const Plan& plan);

// Bytes read and written for each byte of a gradient bucket beside its all-reduce, in the same stream:
// InternEvo puts the bucket together, divides it by the ranks and copies it back (hybrid_zero_optim.py,
// _reduce_and_copy; solver/optimizer/utils.py, reduce_tensor), and so did ZeRO-3 of DeepSpeed of 2021
// (stage3.py, allreduce_bucket, allreduce_and_copy). Scaling does so in 16 bits, and casts to fp32 and back:
// 24 bytes an element of 4 (core/optimizer/allreduce.py). Zero for other frameworks.
double bucket_copies(const Plan& plan);

// Bytes of one parameter as it is computed with and gathered, of its gradient on the wire. Weights held in
// fp8 are gathered by rows alone, in a byte (Megatron-LM, distributed/param_and_grad_buffer.py: torch.uint8),
// and transposed after it; word tables and norms, which stay in 16 bits, count as they do.
double parameter_bytes(const Plan& plan);
double gradient_wire_bytes(const Plan& plan);

}  // namespace rehearse
