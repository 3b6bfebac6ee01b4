#include <array>

#include "frameworks/megatron_names.h"

namespace rehearse {

namespace {

// With what is counted in their place.
constexpr std::array kUnmodelledFlags = {
    UnmodelledFlag{"--rampup-batch-size", "only steps of the full batch are counted"},
    UnmodelledFlag{"--step-batch-size-schedule", "only steps of the full batch are counted"},
    UnmodelledFlag{"--fsdp-double-buffer", "two permanent buffers of the largest layer are not counted"},
    UnmodelledFlag{"--fsdp-manual-registration", "faster collectives of registered buffers are not counted"},
    UnmodelledFlag{"--delay-wgrad-compute", "the overlap of weight gradients and messages is not counted"},
    UnmodelledFlag{"--overlap-p2p-communication-warmup-flush",
                   "overlap of messages in the pipeline warm-up is not counted"},
    UnmodelledFlag{"--overlap-param-gather-with-optimizer-step",
                   "overlap of the first gather with the optimizer step is not counted"},
    UnmodelledFlag{"--defer-embedding-wgrad-compute",
                   "the move of the output projection's weight gradient into the last bubble is not counted"},
    UnmodelledFlag{"--wgrad-deferral-limit", "--defer-embedding-wgrad-compute is ignored too"},
    UnmodelledFlag{"--hierarchical-context-parallel-sizes",
                   "the context-parallel group is counted as one ring"},
    UnmodelledFlag{"--tp-comm-overlap-cfg", "default overlap is counted for every layer"},
    UnmodelledFlag{"--disable-tp-comm-overlap-ag", "overlap is counted for all layers"},
    UnmodelledFlag{"--disable-tp-comm-overlap-rs", "overlap is counted for all layers"},
    UnmodelledFlag{"--disable-tp-comm-bulk-dgrad", "overlap is counted for all layers"},
    UnmodelledFlag{"--disable-tp-comm-bulk-wgrad", "overlap is counted for all layers"},
    UnmodelledFlag{"--tp-comm-overlap-rs-dgrad", "default overlap is counted"},
    UnmodelledFlag{"--distribute-saved-activations",
                   "saved inputs are counted unsharded on each tensor-parallel rank, without a gather"},
    UnmodelledFlag{"--cpu-offloading-num-layers",
                   "activations of these layers are counted on the GPU, without copies"},
    UnmodelledFlag{"--optimizer-offload-fraction", "the whole optimizer state is counted on the host"},
    UnmodelledFlag{"--outer-dp-sharding-strategy", "unsharded state is counted on the outer replicas"},
    UnmodelledFlag{"--use-sharp", "reductions are counted on the GPUs"},
    UnmodelledFlag{"--use-nccl-ub", "faster collectives of registered buffers are not counted"},
    UnmodelledFlag{"--ddp-num-buckets", "buckets have their default size"},
    UnmodelledFlag{"--moe-shared-expert-overlap",
                   "shared experts are counted before dispatch, without overlap"},
    UnmodelledFlag{"--moe-pad-expert-input-to-capacity",
                   "experts with a capacity are always counted with padding"},
    UnmodelledFlag{"--no-bias-gelu-fusion", "the activation is counted as one kernel"},
    UnmodelledFlag{"--no-bias-dropout-fusion", "bias, dropout and residual are counted as one kernel"},
    UnmodelledFlag{"--encoder-num-layers", "no encoder is counted"},
    UnmodelledFlag{"--decoder-num-layers", "no encoder and decoder are counted"},
    UnmodelledFlag{"--use-precision-aware-optimizer", "state is counted in fp32"},
    UnmodelledFlag{"--main-params-dtype", "master weights are counted in fp32"},
    UnmodelledFlag{"--main-grads-dtype", "main gradients are counted in fp32"},
    UnmodelledFlag{"--exp-avg-dtype", "moments are counted in fp32"},
    UnmodelledFlag{"--exp-avg-sq-dtype", "moments are counted in fp32"},
    UnmodelledFlag{"--reuse-grad-buf-for-mxfp8-param-ag", "a separate buffer is counted"},
    UnmodelledFlag{"--calculate-per-token-loss", "one more small all-reduce is not counted"},
    UnmodelledFlag{"--context-parallel-ulysses-degree", "the context-parallel group is counted as one ring"},
    UnmodelledFlag{"--fine-grained-activation-offloading",
                   "activations are counted on the GPU, without copies to the host"},
    UnmodelledFlag{"--offload-modules", "activations are counted on the GPU, without copies to the host"},
    UnmodelledFlag{"--fp32-residual-connection",
                   "the residual stream is counted with 2 bytes per element instead of 4"},
    UnmodelledFlag{"--tensor-parallel-num-weight-shards",
                   "weights are counted unsharded on each tensor-parallel rank, without a gather"}};

// Values of the command line that decide what these would have.
constexpr std::array kOverridden = {Overridden{"--bf16", "/plan/precision"},
                                    Overridden{"--fp16", "/plan/precision"},
                                    Overridden{"--fp8-format", "/plan/precision"},
                                    Overridden{"--fp4-format", "/plan/precision"},
                                    Overridden{"--fp8-recipe", "/plan/fp8_scaling"},
                                    Overridden{"--use-distributed-optimizer", "/plan/zero"},
                                    Overridden{"--use-megatron-fsdp", "/plan/zero"},
                                    Overridden{"--use-custom-fsdp", "/plan/zero"},
                                    Overridden{"--use-torch-fsdp2", "/plan/zero"},
                                    Overridden{"--data-parallel-sharding-strategy", "/plan/zero"},
                                    Overridden{"--optimizer-cpu-offload", "/plan/offload"},
                                    Overridden{"--recompute-activations", "/plan/recompute"},
                                    Overridden{"--checkpoint-activations", "/plan/recompute"},
                                    Overridden{"--activations-checkpoint-method", "/plan/recompute"},
                                    Overridden{"--recompute-modules", "/plan/recompute_modules"},
                                    Overridden{"--cp-comm-type", "/plan/cp_comm_type"},
                                    Overridden{"--num-layers-per-virtual-pipeline-stage", "/plan/vpp"},
                                    Overridden{"--clip-grad", "/plan/clip_grad"},
                                    Overridden{"--moe-token-dispatcher-type", "/plan/moe_dispatcher"},
                                    Overridden{"--enable-zero-bubble", "/plan/schedule"},
                                    Overridden{"--zero-bubble-v-schedule", "/plan/schedule"}};

}  // namespace

std::span<const UnmodelledFlag> unmodelled_flags() {
  return kUnmodelledFlags;
}
std::span<const Overridden> overridden_flags() {
  return kOverridden;
}

}  // namespace rehearse
