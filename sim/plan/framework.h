// What does a training framework do unless it is told otherwise?
#pragma once

#include "plan/plan.h"

namespace rehearse {

// Gradients that DeepSpeed reduces at once (runtime/zero/config.py, reduce_bucket_size).
constexpr double kDeepSpeedBucketElements = 5e8;

// Sets the fields that plan.framework decides, for the precision, degrees and ZeRO stage that the plan has:
//  megatron-2021  Megatron-LM of Narayanan et al. 2021 (release 2.x): gradients of fp16 models are kept and
//                 reduced in fp16 after the backward pass, and copied to fp32 for the optimizer, whose every
//                 pass is a kernel of its own; attention and the loss in separate kernels; neither sequence
//                 parallelism nor collectives beside the weight gradients
//  megatron-core  gradients accumulated and reduced in fp32 beside the backward pass, fused attention,
//                 sequence parallelism with tensor parallelism
//  deepspeed      gradients kept and reduced in the training precision, in buckets of
//                 kDeepSpeedBucketElements, after every microbatch from ZeRO-2 on
//  deepspeed-2021 the same with ZeRO-3's collectives of that spring, one for each weight (exchanges_lists()),
//                 under a model of those days: attention and the loss in separate kernels (DeepSpeedExamples,
//                 Megatron-LM-v1.1.5-ZeRO3)
//  fsdp1          PyTorch's FullyShardedDataParallel: as fsdp, but each layer is one flat parameter, whose
//                 gradient is put together, cast and divided before it is reduced (copies()), and Adam takes
//                 a kernel for each operation (torch.optim.AdamW unless told fused=True)
//  fsdp           PyTorch FSDP2: fp32 shards, gathered and reduced in the training precision (fully_shard's
//                 MixedPrecisionPolicy), layer by layer; beside a weight gradient no collective of tensor
//                 parallelism runs (DTensor); recompute stops early (torch.utils.checkpoint's early_stop, on
//                 since PyTorch 2.1)
//  torchtitan     as fsdp, reduced in fp32 (training.mixed_precision_reduce); queries, keys, values, gate and
//                 up projection one product each (models/llama3); under pipeline parallelism parameters stay
//                 whole between microbatches and are reduced once (fsdp_reshard_after_forward "default", and
//                 PyTorch's pipelining stage.py)
//  nanotron       gradients in 16 bits, added to fp32 ones and reduced in fp32, beside the backward pass by
//                 DistributedDataParallel; with ZeRO-1 all-reduced after it without one (trainer.py,
//                 make_ddp); the loss and SwiGLU in a kernel for each operation (models/llama.py,
//                 GLUActivation; norms and rotary positions are FlashAttention's), heads copied before
//                 attention (plan/work/eager.h), layers split by cost (plan/layer_split.h)
//  internevo      gradients kept and reduced in the training precision, in buckets of 2^29 elements
//                 (configs/7B_sft.py, reduce_bucket_size), and copied to fp32 by the rank that owns them
//                 (owns_parameters()); norms read fp32 copies and run again in the backward pass
//                 (modeling_internlm.py, dropout_selective_checkpoint), gate and up projection one product
//                 each, SwiGLU and Adam in a kernel for each operation (linear.py, FeedForward;
//                 torch.optim.AdamW); no sequence parallelism (InternLM of July 2023)
//  aleph-scaling  Aleph Alpha's Scaling (737f8558 of October 2024): gradients kept in the training precision
//                 and all-reduced in fp32, after the last backward pass and also with ZeRO-1
//                 (core/optimizer/allreduce.py); gate and up projection one product each, which reduce their
//                 input's gradient each (core/nn/mlp.py, linear/utils.py); logits gathered on every
//                 tensor-parallel rank, the loss of whole rows (transformer/model/layers/lm_head.py,
//                 losses/cross_entropy.py); full recompute runs embedding and head again, too
//                 (parallel_module.py, EVERY_LAYER); a kernel for each operation wherever there is no
//                 FlashAttention; stages of equal parameters (plan/layer_split.h; examples/
//                 transformer_example/config.yml); nothing beside anything else
void apply_framework(Plan& plan);

}  // namespace rehearse
