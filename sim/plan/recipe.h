// How many bytes does training keep for each parameter, and in which form?
#pragma once

#include <vector>

#include "plan/plan.h"

namespace rehearse {

// Bytes for each parameter of one rank, before any sharding.
struct StateBytes {
  double parameter = 2;       // as the forward pass reads it
  double gradient = 4;        // as it is accumulated and reduced
  double fresh_gradient = 0;  // of the last microbatch, beside the sum that it was added to; never sharded.
                              // Autocast's goes at once; instead, its copy of the weight stays as long
  double gradient_copy = 0;   // a second one that the optimizer reads
  double master = 4;
  double moments = 8;  // Adam's two
  double bucket = 0;   // buckets to which gradients are copied before they are reduced; never sharded
  double optimizer() const { return gradient_copy + master + moments; }
  double gradients() const { return gradient + fresh_gradient + bucket; }
  double total() const { return parameter + gradients() + optimizer(); }
};

// Bytes of the recipe, or of training in fp32 alone where the plan's precision is fp32:
// - megatron, 18: 16-bit weight, fp32 gradient accumulated over microbatches, fp32 master weight and moments
//   (Megatron-LM, theoretical_memory_usage.py: 18 bytes).
// - zero, 16: the gradient is also in 16 bits (Rajbhandari et al. 2020, section 3.1: 2 + 2 + 12).
// - sagemaker, 20: as zero, with an fp32 copy of the gradient for the optimizer (AWS, "Introduction to model
//   parallelism": 2 + 2 + 8 + 4 + 4). Also for Megatron-LM where gradients have the type of the parameters: 4
//   + 16/d bytes with a distributed optimizer (docs/user-guide/features/dist_optimizer.md;
//   core/distributed/param_and_grad_buffer.py, grad_dtype).
// - deepspeed-bf16, 20: as megatron, with the 16-bit gradient of a microbatch until the next one's backward.
//   Two kernels a parameter add it to the fp32 one (DeepSpeed's BF16_Optimizer as of April 2022,
//   update_hp_grads).
// - nanotron, 20: as deepspeed-bf16, but one kernel a parameter adds the gradient at the end of each backward
//   pass, which then drops it. With data parallelism, but without ZeRO-1, 2 more in DistributedDataParallel's
//   buckets (nanotron, optim/gradient_accumulator.py, _accumulate_grad; trainer.py, make_ddp, which does not
//   ask for gradients that are views of the buckets).
// - fsdp, 16: weight, gradient and moments in fp32. The 16-bit weight lives while it is gathered (PyTorch's
//   fully_shard with a MixedPrecisionPolicy).
// - autocast, 18: weight, gradient and moments in fp32. A 16-bit copy of the weight lives through a
//   microbatch's passes. Its 16-bit gradient is cast and added to the fp32 one (torch.autocast:
//   aten/src/ATen/autocast_mode.cpp, cached_cast).
// - bf16, 8: weight, gradient and moments in bf16, no master weight.
// - fp8-weights, 18: as megatron, with the weight held as fp8 twice, by rows and by columns, as Hopper's FP8
//   GEMMs need their operands (Transformer Engine; Megatron-LM's --fp8-param-gather).
// - fp32, 16: weight, gradient and moments in fp32, no second weight.
//
// With Plan::fp8_weight_copies 1, fp8 weights take a byte less. From Blackwell on, GEMMs scaled by tensor
// take operands of either layout (Transformer Engine, pytorch/utils.py, is_non_tn_fp8_gemm_supported).
StateBytes state_bytes(const Plan& plan);

// Whether linear layers keep their weights only in fp8, besides the optimizer's (Megatron-LM's
// --fp8-param-gather).
bool holds_fp8_weights(const Plan& plan);

// Whether fresh_gradient is released at the end of each backward pass. It is allocated as activations are
// released.
bool drops_fresh_gradients(const Plan& plan);

// Whether gradients are allocated in an iteration's only backward pass, as activations are released. They
// were set to None before it (Megatron-LM of 2021, megatron/optimizer/optimizer.py, zero_grad, where no
// buffer holds them).
bool gradients_come_anew(const Plan& plan);

// Whether Megatron-LM of 2021 and its fp16 optimizer reduce gradients themselves after the last backward
// pass. They copy them side by side, for any number of replicas (megatron/model/distributed.py,
// allreduce_params).
bool has_local_ddp(const Plan& plan);

// Bytes that weight casts read and write for an element, where weights are cast for each microbatch; else 0.
double weight_cast_bytes(const Plan& plan);

// Where separate kernels add a microbatch's gradient to the kept one: the bytes that each kernel reads and
// writes for an element, averaged over the microbatches of a step.
std::vector<double> addition_bytes(const Plan& plan);

}  // namespace rehearse
