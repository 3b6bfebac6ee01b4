#include <array>

#include "plan/frameworks/defaults.h"

namespace rehearse {

namespace {

constexpr std::array kVersionsOfTorchtitan = {"0.2"};

void set_torchtitan(Plan& plan) {
  plan.tp_backward_overlap = false;
  plan.recompute_early_stop = true;
  plan.fused_adam = true;
  if (is_mixed(plan)) plan.recipe = Recipe::fsdp;
}

void set_fsdp(Plan& plan) {
  plan.grad_reduce = wire_precision(plan);
  set_torchtitan(plan);
}

void set_fsdp1(Plan& plan) {
  set_fsdp(plan);
  plan.fused_adam = false;  // torch.optim.AdamW without fused=True
}

// Not compiled: rotary positions, activation and loss in separate kernels; gradients clipped to 1 (v0.2.2,
// torchtitan/config/job_config.py).
std::vector<OwnDefault> own_defaults_of_torchtitan(const Plan& plan, const Model&) {
  std::vector<OwnDefault> found;
  add_off<&Plan::fused_rotary>("fused_rotary", plan, true, found);
  add_off<&Plan::fused_activation>("fused_activation", plan, true, found);
  add_off<&Plan::fused_cross_entropy>("fused_cross_entropy", plan, true, found);
  add_clipping(plan, found);
  return found;
}

// Shards are fp32. They are gathered and reduced in the training precision (fully_shard's
// MixedPrecisionPolicy), layer by layer. No collective of tensor parallelism runs beside a weight gradient
// (DTensor). Recompute stops early (torch.utils.checkpoint's early_stop, on since PyTorch 2.1).
constexpr FrameworkTraits of_pytorch(Framework framework, const char* name, const char* project,
                                     const char* about, void (*set_defaults)(Plan& plan)) {
  return {
      .framework = framework,
      .name = name,
      .project = project,
      .about = about,
      .set_defaults = set_defaults,
      .max_zero_in_pipelines = 3,
      .dtensor = true,
      .keeps_gathered = true,
      .fsdp = Fsdp::by_parameter,
      .model_group = ModelGroup::never,
  };
}

}  // namespace

constinit const FrameworkTraits frameworks::fsdp =
    of_pytorch(Framework::fsdp, "fsdp", "PyTorch FSDP2",
               "PyTorch's fully_shard (FSDP2), with DTensor's tensor parallelism", set_fsdp);

// Each layer is one flat parameter. Its gradient is put together, cast and divided before it is reduced
// (copies()). Adam takes a kernel for each operation.
constinit const FrameworkTraits frameworks::fsdp1 = [] {
  FrameworkTraits traits = of_pytorch(Framework::fsdp1, "fsdp1", "PyTorch FSDP1",
                                      "PyTorch's FullyShardedDataParallel (FSDP1)", set_fsdp1);
  traits.fsdp = Fsdp::flat;
  return traits;
}();

// Gradients are reduced in fp32 (training.mixed_precision_reduce). Queries, keys, values, gate and up
// projection are a GEMM each (models/llama3). In a pipeline parameters stay whole between microbatches, and
// are reduced once (fsdp_reshard_after_forward "default", and PyTorch's pipelining stage.py).
constinit const FrameworkTraits frameworks::torchtitan = [] {
  FrameworkTraits traits =
      of_pytorch(Framework::torchtitan, "torchtitan", "torchtitan",
                 "torchtitan 0.2: FSDP2, DTensor, torchao's fp8, PyTorch's pipelining", set_torchtitan);
  traits.versions = kVersionsOfTorchtitan;
  traits.own_defaults = own_defaults_of_torchtitan;
  traits.fp8 = Fp8Library::torchao;
  traits.repeats_heads = true;
  traits.splits_qkv = true;
  traits.splits_gate = true;
  return traits;
}();

}  // namespace rehearse
