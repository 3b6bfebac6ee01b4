#include <array>

#include "frameworks/megatron_names.h"

namespace rehearse {

namespace {

// With what is counted in their place.
constexpr std::array kUnmodelledFlags = {
    UnmodelledFlag{"--rampup-batch-size",
                   "the step of the full batch is shown, smaller ones before it are not"},
    UnmodelledFlag{"--step-batch-size-schedule",
                   "the step of the full batch is shown, smaller ones before it are not"},
    UnmodelledFlag{"--fsdp-double-buffer", "it takes two buffers of the largest layer for good"},
    UnmodelledFlag{"--fsdp-manual-registration", "it makes collectives of registered buffers faster"},
    UnmodelledFlag{"--delay-wgrad-compute", "it moves weight gradients beside messages"},
    UnmodelledFlag{"--overlap-p2p-communication-warmup-flush", "it hides messages of the pipeline's warm-up"},
    UnmodelledFlag{"--overlap-param-gather-with-optimizer-step", "it hides the first gather behind the step"},
    UnmodelledFlag{"--defer-embedding-wgrad-compute",
                   "it moves the head's weight gradient into the last bubble"},
    UnmodelledFlag{"--wgrad-deferral-limit", "it bounds what --defer-embedding-wgrad-compute moves"},
    UnmodelledFlag{"--hierarchical-context-parallel-sizes", "the context group is taken as one ring"},
    UnmodelledFlag{"--tp-comm-overlap-cfg", "the overlap of every layer is that of the defaults"},
    UnmodelledFlag{"--disable-tp-comm-overlap-ag", "all layers are taken to overlap"},
    UnmodelledFlag{"--disable-tp-comm-overlap-rs", "all layers are taken to overlap"},
    UnmodelledFlag{"--disable-tp-comm-bulk-dgrad", "all layers are taken to overlap"},
    UnmodelledFlag{"--disable-tp-comm-bulk-wgrad", "all layers are taken to overlap"},
    UnmodelledFlag{"--tp-comm-overlap-rs-dgrad", "the overlap is that of the defaults"},
    UnmodelledFlag{"--distribute-saved-activations",
                   "kept inputs are counted whole on each tensor-parallel rank, and no gather is"},
    UnmodelledFlag{"--cpu-offloading-num-layers",
                   "activations of these layers are counted on the GPU, and no copy is"},
    UnmodelledFlag{"--optimizer-offload-fraction", "the whole optimizer state is taken to be on the host"},
    UnmodelledFlag{"--outer-dp-sharding-strategy", "the outer replicas are taken to hold whole state"},
    UnmodelledFlag{"--use-sharp", "reductions are taken to run on the GPUs"},
    UnmodelledFlag{"--use-nccl-ub", "it makes collectives of registered buffers faster"},
    UnmodelledFlag{"--ddp-num-buckets", "buckets have their default size"},
    UnmodelledFlag{"--moe-shared-expert-overlap", "shared experts are taken to run before the exchange"},
    UnmodelledFlag{"--moe-pad-expert-input-to-capacity", "experts without it take fewer rows"},
    UnmodelledFlag{"--no-bias-gelu-fusion", "the activation is taken as one kernel"},
    UnmodelledFlag{"--no-bias-dropout-fusion", "bias, dropout and residual are taken as one kernel"},
    UnmodelledFlag{"--encoder-num-layers", "no encoder is modelled"},
    UnmodelledFlag{"--decoder-num-layers", "no encoder and decoder are modelled"},
    UnmodelledFlag{"--use-precision-aware-optimizer", "state is counted in fp32"},
    UnmodelledFlag{"--main-params-dtype", "master weights are counted in fp32"},
    UnmodelledFlag{"--main-grads-dtype", "main gradients are counted in fp32"},
    UnmodelledFlag{"--exp-avg-dtype", "moments are counted in fp32"},
    UnmodelledFlag{"--exp-avg-sq-dtype", "moments are counted in fp32"},
    UnmodelledFlag{"--reuse-grad-buf-for-mxfp8-param-ag", "a buffer of its own is counted"},
    UnmodelledFlag{"--calculate-per-token-loss", "one more small all-reduce is not counted"},
    UnmodelledFlag{"--context-parallel-ulysses-degree", "the context group is taken as one ring"},
    UnmodelledFlag{"--fine-grained-activation-offloading",
                   "activations are counted on the GPU, and no copy to the host is"},
    UnmodelledFlag{"--offload-modules", "activations are counted on the GPU, and no copy to the host is"},
    UnmodelledFlag{"--fp32-residual-connection",
                   "the residual stream is counted in 2 bytes an element in place of 4"},
    UnmodelledFlag{"--tensor-parallel-num-weight-shards",
                   "weights are counted whole on each tensor-parallel rank, and no gather is"}};

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
