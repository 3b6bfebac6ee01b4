#include "plan/frameworks/defaults.h"

namespace rehearse {

namespace {

void set_pytorch(Plan& plan) {
  plan.tp_backward_overlap = false;
  plan.recompute_early_stop = true;
  plan.fused_adam = true;
  if (is_mixed(plan)) plan.recipe = Recipe::fsdp;
}

void set_fsdp(Plan& plan) {
  plan.grad_reduce = wire_precision(plan);
  set_pytorch(plan);
}

}  // namespace

// PyTorch FSDP2: fp32 shards, gathered and reduced in the training precision (fully_shard's
// MixedPrecisionPolicy), layer by layer; beside a weight gradient no collective of tensor parallelism runs
// (DTensor); recompute stops early (torch.utils.checkpoint's early_stop, on since PyTorch 2.1).
const FrameworkTraits kFsdp2 = {
    .framework = Framework::fsdp,
    .name = "fsdp",
    .project = "PyTorch FSDP2",
    .about = "PyTorch's fully_shard (FSDP2), with DTensor's tensor parallelism",
    .set_defaults = set_fsdp,
    .max_zero_in_pipelines = 3,
    .dtensor = true,
    .keeps_gathered = true,
    .fsdp = Fsdp::by_parameter,
    .model_group = ModelGroup::never,
};

// PyTorch's FullyShardedDataParallel: as fsdp, but each layer is one flat parameter, whose gradient is put
// together, cast and divided before it is reduced (copies()), and Adam takes a kernel for each operation
// (torch.optim.AdamW unless told fused=True).
const FrameworkTraits kFsdp1 = {
    .framework = Framework::fsdp1,
    .name = "fsdp1",
    .project = "PyTorch FSDP1",
    .about = "PyTorch's FullyShardedDataParallel (FSDP1)",
    .set_defaults =
        [](Plan& plan) {
          set_fsdp(plan);
          plan.fused_adam = false;
        },
    .max_zero_in_pipelines = 3,
    .dtensor = true,
    .keeps_gathered = true,
    .fsdp = Fsdp::flat,
    .model_group = ModelGroup::never,
};

// As fsdp, reduced in fp32 (training.mixed_precision_reduce); queries, keys, values, gate and up projection
// one GEMM each (models/llama3); under pipeline parallelism parameters stay whole between microbatches and
// are reduced once (fsdp_reshard_after_forward "default", and PyTorch's pipelining stage.py).
const FrameworkTraits kTorchtitan = {
    .framework = Framework::torchtitan,
    .name = "torchtitan",
    .project = "torchtitan",
    .about = "torchtitan 0.2: FSDP2, DTensor, torchao's fp8, PyTorch's pipelining",
    .versions = {"0.2"},
    .set_defaults = set_pytorch,
    // Not compiled: rotary positions, activation and loss in kernels of their own; gradients clipped to 1
    // (v0.2.2, torchtitan/config/job_config.py).
    .own_defaults =
        [](const Plan& plan, const Model&) {
          std::vector<OwnDefault> found;
          add_off<&Plan::fused_rotary>("fused_rotary", plan, true, found);
          add_off<&Plan::fused_activation>("fused_activation", plan, true, found);
          add_off<&Plan::fused_cross_entropy>("fused_cross_entropy", plan, true, found);
          add_clipping(plan, found);
          return found;
        },
    .max_zero_in_pipelines = 3,
    .fp8 = Fp8Library::torchao,
    .dtensor = true,
    .keeps_gathered = true,
    .repeats_heads = true,
    .splits_qkv = true,
    .splits_gate = true,
    .fsdp = Fsdp::by_parameter,
    .model_group = ModelGroup::never,
};

}  // namespace rehearse
