#include "frameworks/megatron_values.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace rehearse {

namespace {

struct ClosedList {
  const char* name;
  const char* values;  // with a blank between each two
};

// The choices of megatron/training/arguments.py and the Literal types of the dataclasses that flags are made
// of, of core_v0.6.0, v0.9.0, v0.13.0 and d98e8a64dd together; lists that stand in prose from
// transformer_config.py (cp_comm_type, recompute_modules, cuda_graph_modules) and enums.py (AttnBackend).
constexpr std::array kLists = {
    ClosedList{"--DDP-impl", "local torch FSDP"},
    ClosedList{"--activations-checkpoint-method", "uniform block"},
    ClosedList{"--attention-backend", "flash fused unfused local auto"},
    ClosedList{"--ckpt-format", "torch torch_dist zarr torch_dcp fsdp_dtensor"},
    ClosedList{"--cp-comm-type", "p2p all_gather allgather a2a a2a+p2p"},
    ClosedList{"--cross-entropy-fusion-impl", "native te"},
    ClosedList{"--cuda-graph-impl", "none local transformer_engine full_iteration"},
    ClosedList{"--cuda-graph-modules", "attn mlp moe moe_router moe_preprocess mamba full"},
    ClosedList{"--cuda-graph-scope",
               "attn mlp moe moe_router moe_preprocess mamba full full_iteration "
               "full_iteration_inference"},
    ClosedList{"--data-parallel-sharding-strategy", "no_shard optim optim_grads optim_grads_params"},
    ClosedList{"--dataloader-type", "single cyclic external"},
    ClosedList{"--dist-ckpt-format", "zarr torch_dist"},
    ClosedList{"--dist-ckpt-strictness",
               "assume_ok_unexpected log_unexpected log_all raise_unexpected raise_all "
               "return_unexpected return_all ignore_all"},
    ClosedList{"--distributed-backend", "nccl gloo"},
    ClosedList{"--exp-avg-dtype", "fp32 fp16 bf16 fp8"},
    ClosedList{"--exp-avg-sq-dtype", "fp32 fp16 bf16 fp8"},
    ClosedList{"--fp4-format", "e2m1"},
    ClosedList{"--fp4-recipe", "nvfp4 custom"},
    ClosedList{"--fp8-amax-compute-algo", "most_recent max"},
    ClosedList{"--fp8-format", "e4m3 hybrid"},
    ClosedList{"--fp8-recipe", "tensorwise delayed mxfp8 blockwise custom"},
    ClosedList{"--lr-decay-style", "constant linear cosine inverse-square-root WSD"},
    ClosedList{"--lr-wsd-decay-style", "exponential linear cosine minus_sqrt"},
    ClosedList{"--main-grads-dtype", "fp32 bf16"},
    ClosedList{"--main-params-dtype", "fp32 fp16"},
    ClosedList{"--moe-flex-dispatcher-backend", "deepep hybridep ncclep"},
    ClosedList{"--moe-router-dtype", "fp32 fp64"},
    ClosedList{"--moe-router-load-balancing-type",
               "aux_loss sinkhorn none seq_aux_loss global_aux_loss quantile_balancing"},
    ClosedList{"--moe-router-score-function", "softmax sigmoid sqrtsoftplus"},
    ClosedList{"--moe-token-dispatcher-type", "allgather alltoall alltoall_seq flex"},
    ClosedList{"--moe-token-drop-policy", "probs position"},
    ClosedList{"--normalization", "LayerNorm RMSNorm"},
    ClosedList{"--optimizer", "adam sgd muon dist_muon lion soap adaptive_muon"},
    ClosedList{"--outer-dp-sharding-strategy", "no_shard optim"},
    ClosedList{"--position-embedding-type", "learned_absolute rope none mrope relative yarn"},
    ClosedList{"--recompute-granularity", "full selective"},
    ClosedList{"--recompute-method", "uniform block"},
    ClosedList{"--recompute-modules", "core_attn moe_act layernorm mla_up_proj mlp moe shared_experts"},
    ClosedList{"--rerun-mode", "disabled validate_results report_stats"},
    ClosedList{"--softmax-type", "vanilla off-by-one learnable"},
    ClosedList{"--tiktoken-pattern", "v1 v2"},
    ClosedList{"--timing-log-option", "max minmax all"},
    ClosedList{"--tokenizer-type",
               "BertWordPieceLowerCase BertWordPieceCase GPT2BPETokenizer SentencePieceTokenizer "
               "GPTSentencePieceTokenizer Llama2Tokenizer NullTokenizer HuggingFaceTokenizer "
               "TikTokenizer MultimodalTokenizer NullMultimodalTokenizer SFTTokenizer"},
    ClosedList{"--transformer-impl", "local transformer_engine inference_optimized"},
    ClosedList{"--weight-decay-incr-style", "constant linear cosine"},
    ClosedList{"--zero-bubble-v-schedule-mem-setup", "min half zb"}};

// Flags of action store_true or store_false, and fields of type bool, of the same sources.
constexpr std::array kSwitches = {"--account-for-embedding-in-pipeline-split",
                                  "--account-for-loss-in-pipeline-split",
                                  "--accumulate-allreduce-grads-in-fp32",
                                  "--add-qkv-bias",
                                  "--apply-layernorm-1p",
                                  "--apply-query-key-layer-scaling",
                                  "--async-save",
                                  "--attention-softmax-in-fp32",
                                  "--auto-detect-ckpt-format",
                                  "--bf16",
                                  "--calculate-per-token-loss",
                                  "--check-for-nan-in-loss-and-grad",
                                  "--checkpoint-activations",
                                  "--ckpt-assume-constant-structure",
                                  "--ckpt-fully-parallel-load",
                                  "--ckpt-fully-parallel-save",
                                  "--cross-entropy-loss-fusion",
                                  "--ddp-average-in-collective",
                                  "--defer-embedding-wgrad-compute",
                                  "--delay-wgrad-compute",
                                  "--deterministic-mode",
                                  "--disable-bias-linear",
                                  "--disable-tp-comm-bulk-dgrad",
                                  "--disable-tp-comm-bulk-wgrad",
                                  "--disable-tp-comm-overlap-ag",
                                  "--disable-tp-comm-overlap-rs",
                                  "--distribute-saved-activations",
                                  "--enable-cuda-graph",
                                  "--enable-zero-bubble",
                                  "--eod-mask-loss",
                                  "--exit-signal-handler",
                                  "--external-cuda-graph",
                                  "--fine-grained-activation-offloading",
                                  "--finetune",
                                  "--first-last-layers-bf16",
                                  "--fp16",
                                  "--fp32-residual-connection",
                                  "--fp8-dot-product-attention",
                                  "--fp8-output-proj",
                                  "--fp8-param-gather",
                                  "--fsdp-double-buffer",
                                  "--fsdp-manual-registration",
                                  "--grad-reduce-in-bf16",
                                  "--group-query-attention",
                                  "--init-method-xavier-uniform",
                                  "--lazy-mpu-init",
                                  "--legacy-tokenizer",
                                  "--log-memory-to-tensorboard",
                                  "--log-num-zeros-in-grad",
                                  "--log-params-norm",
                                  "--log-progress",
                                  "--log-straggler",
                                  "--log-throughput",
                                  "--log-timers-to-tensorboard",
                                  "--log-validation-ppl-to-tensorboard",
                                  "--log-world-size-to-tensorboard",
                                  "--manual-gc",
                                  "--manual-gc-eval",
                                  "--mmap-bin-files",
                                  "--mock-data",
                                  "--moe-enable-deepep",
                                  "--moe-grouped-gemm",
                                  "--moe-pad-expert-input-to-capacity",
                                  "--moe-per-layer-logging",
                                  "--moe-permute-fusion",
                                  "--moe-router-enable-expert-bias",
                                  "--moe-router-force-load-balancing",
                                  "--moe-router-fusion",
                                  "--moe-router-pre-softmax",
                                  "--moe-shared-expert-overlap",
                                  "--mtp-use-repeated-layer",
                                  "--multi-latent-attention",
                                  "--no-async-load",
                                  "--no-async-tensor-model-parallel-allreduce",
                                  "--no-bias-dropout-fusion",
                                  "--no-bias-gelu-fusion",
                                  "--no-bias-swiglu-fusion",
                                  "--no-check-for-nan-in-loss-and-grad",
                                  "--no-create-attention-mask-in-dataloader",
                                  "--no-gradient-accumulation-fusion",
                                  "--no-initialization",
                                  "--no-load-optim",
                                  "--no-load-rng",
                                  "--no-masked-softmax-fusion",
                                  "--no-mmap-bin-files",
                                  "--no-one-logger",
                                  "--no-overlap-p2p-communication",
                                  "--no-persist-layer-norm",
                                  "--no-position-embedding",
                                  "--no-rope-fusion",
                                  "--no-save-optim",
                                  "--no-save-rng",
                                  "--no-scatter-gather-tensors-in-pipeline",
                                  "--optimizer-cpu-offload",
                                  "--overlap-grad-reduce",
                                  "--overlap-moe-expert-parallel-comm",
                                  "--overlap-p2p-communication-warmup-flush",
                                  "--overlap-param-gather",
                                  "--overlap-param-gather-with-optimizer-step",
                                  "--override-opt-param-scheduler",
                                  "--override-opt_param-scheduler",
                                  "--profile",
                                  "--qk-layernorm",
                                  "--quick-geglu",
                                  "--recompute-activations",
                                  "--record-memory-history",
                                  "--reset-attention-mask",
                                  "--reset-position-ids",
                                  "--reuse-grad-buf-for-mxfp8-param-ag",
                                  "--sequence-parallel",
                                  "--squared-relu",
                                  "--swiglu",
                                  "--te-rng-tracker",
                                  "--test-mode",
                                  "--tokenizer-hf-use-fast",
                                  "--tp-comm-overlap",
                                  "--tp-comm-overlap-rs-dgrad",
                                  "--untie-embeddings-and-output-weights",
                                  "--use-checkpoint-args",
                                  "--use-checkpoint-opt_param-scheduler",
                                  "--use-cpu-initialization",
                                  "--use-custom-fsdp",
                                  "--use-dist-ckpt",
                                  "--use-distributed-optimizer",
                                  "--use-flash-attn",
                                  "--use-legacy-models",
                                  "--use-mcore-models",
                                  "--use-megatron-fsdp",
                                  "--use-mp-args-from-checkpoint-args",
                                  "--use-nccl-ub",
                                  "--use-persistent-ckpt-worker",
                                  "--use-precision-aware-optimizer",
                                  "--use-pytorch-profiler",
                                  "--use-rope-scaling",
                                  "--use-rotary-position-embeddings",
                                  "--use-sharp",
                                  "--use-torch-fsdp2",
                                  "--use-tp-pp-dp-mapping",
                                  "--use-transformer-engine-op-fuser",
                                  "--zero-bubble-v-schedule"};

}  // namespace

std::vector<std::string> legal_values(const std::string& flag) {
  const auto* const found =
      std::ranges::find_if(kLists, [&](const ClosedList& list) { return flag == list.name; });
  std::vector<std::string> values;
  if (found == kLists.end()) return values;
  std::istringstream words{std::string(found->values)};
  for (std::string word; words >> word;) values.push_back(word);
  return values;
}

bool is_switch(const std::string& flag) {
  return std::ranges::find(kSwitches, std::string_view(flag)) != kSwitches.end();
}

}  // namespace rehearse
