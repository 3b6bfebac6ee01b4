// Which ranks divide which part of the model state, and which bytes do they send for it?
//
// Rajbhandari et al. 2020 (ZeRO), sections 5 and 7. Sharding inside groups: Zhao et al. 2023 (PyTorch FSDP),
// section 3.2.2.
#pragma once

#include "plan/plan.h"

namespace rehearse {

// Number of ranks with the same parameters that divide each part; 1: every rank holds all.
struct Sharding {
  int parameters = 1;
  int gradients = 1;
  int optimizer = 1;
};
Sharding sharding(const Plan& plan);
Sharding expert_sharding(const Plan& plan);  // of the parameters that Plan::edp() ranks share

// Ranks of one sharding group: dp x cp if there is only one group; 1 without ZeRO.
int shard_size(const Plan& plan);
int expert_shard_size(const Plan& plan);  // as expert_sharding()

// Sharding groups that hold the same state and sum their gradients; 1 without ZeRO.
int shard_replicas(const Plan& plan);

// Whether each microbatch's backward ends with its own reduction. Gradients that are not kept whole cannot be
// added up.
bool reduces_each_microbatch(const Plan& plan);

// For ZeRO-3 that keeps gathered parameters whole after the forward pass: whether the backward pass drops
// them, so that the next microbatch gathers them again. FSDP2 does (_fsdp_param_group.py, post_backward),
// unless a pipeline's stage forbids it before the last microbatch (torch/distributed/pipelining/stage.py,
// backward_maybe_with_nosync). FSDP1's SHARD_GRAD_OP does after a backward pass that reduces
// (_runtime_utils.py, _should_free_in_backward).
bool drops_after_backward(const Plan& plan);

// Whether each microbatch gathers the parameters. If not, all microbatches of a step share one gather.
bool gathers_each_microbatch(const Plan& plan);

// Whether parameters are gathered unit by unit. If not, all of a stage are gathered at once after the step.
bool gathers_by_unit(const Plan& plan);

// Whether each parameter of a sharding group belongs to one rank, which steps it and broadcasts it. This is
// InternEvo's ZeRO-1 (internlm/solver/optimizer/hybrid_zero_optim.py; plan/owners.h assigns the owners).
// Experts' parameters are divided evenly nevertheless.
bool owns_parameters(const Plan& plan);

// Whether REDUCE_GRAD leaves each rank of a sharding group only its part of the sums. These all-reduce
// instead:
// - owners. Over several groups, their bytes are priced as scattered in each group and summed across groups;
// - nanotron's ZeRO-1 (trainer.py, training_step: sync_gradients_across_dp with reduce_scatter=False);
// - that of Aleph Alpha's Scaling (core/optimizer/optimizer.py, step: allreduce_gradients);
// - ZeRO-3 of DeepSpeed of 2021 without contiguous_gradients, which was off by default (stage3.py,
//   reduce_ipg_grads: buffered_reduce_fallback).
bool scatters_gradients(const Plan& plan);

// Whether each weight is gathered by itself, as a list with a tensor for every rank, and smaller parameters
// once a step. This is ZeRO-3 of DeepSpeed until July 2021 (deepspeed/runtime/zero/partition_parameters.py,
// _allgather_param, _allgather_params).
bool exchanges_lists(const Plan& plan);

// Bytes that copies of PyTorch's FSDP read and write beside the kernels of a microbatch, for each gathered or
// reduced element. FSDP2 copies the gathered buffer into the parameters, and gradients into the buffer that
// it reduces (_fsdp_collectives.py: split_with_sizes_copy, chunk_cat). FSDP1 gathers in place. It assembles
// the gradient of a flat parameter from those of its views, casts it and divides it by a part of the ranks
// (_runtime_utils.py, _post_backward_hook; _comm_hooks: reduce_scatter_hook). Zero for other frameworks.
struct Copies {
  double gather = 0;
  double reduce = 0;
};
Copies copies(const Plan& plan);

// Bytes read and written for each byte of a gradient bucket beside its all-reduce, in the same stream.
// InternEvo assembles the bucket, divides it by the ranks and copies it back (hybrid_zero_optim.py,
// _reduce_and_copy; solver/optimizer/utils.py, reduce_tensor). So did ZeRO-3 of DeepSpeed of 2021 (stage3.py,
// allreduce_bucket, allreduce_and_copy). Scaling does it in 16 bits, and casts to fp32 and back: 24 bytes an
// element of 4 (core/optimizer/allreduce.py). Zero for other frameworks.
double bucket_copies(const Plan& plan);

// Bytes of one parameter as it is computed with and gathered, and of its gradient on the wire. Weights held
// in fp8 are gathered only by rows, in a byte (Megatron-LM, distributed/param_and_grad_buffer.py:
// torch.uint8), and transposed after that. Word tables and norms stay in 16 bits, but count the same.
double parameter_bytes(const Plan& plan);
// Bytes of a parameter that is not trained, as it is held and gathered. It has no fp32 copy: accelerate casts
// trained parameters alone up (src/accelerate/accelerator.py: param.requires_grad).
double frozen_parameter_bytes(const Plan& plan);
double gradient_wire_bytes(const Plan& plan);

}  // namespace rehearse
