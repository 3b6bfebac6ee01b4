# What OLMo-core's own functions and classes give a training script, as far as time and memory depend on it. The
# evaluator reads this description beside the script; Python never runs it. Source: allenai/OLMo-core at fa6c5014,
# src/olmo_core: internal/experiment.py, internal/common.py, internal/cookbook.py, script_utils.py, launch/beaker.py,
# data/tokenizer.py, train/config.py, train/train_module/transformer/config.py, nn/transformer/config.py,
# nn/attention/__init__.py, nn/moe/moe.py, float8/ao.py.

CLUSTER_TO_GPU_TYPE = {"ai2/jupiter": "H100", "ai2/ceres": "H100", "ai2/titan": "B200"}


class TokenizerConfig:
    vocab_size: int

    def padded_vocab_size(self, pad_multiple=128):
        return (self.vocab_size + pad_multiple - 1) // pad_multiple * pad_multiple

    @staticmethod
    def dolma2():
        return TokenizerConfig(vocab_size=100278)

    @staticmethod
    def dolma2_sigdig():
        return TokenizerConfig(vocab_size=100278)

    @staticmethod
    def gpt_neox_olmo_dolma_v1_5():
        return TokenizerConfig(vocab_size=50280)

    @staticmethod
    def gpt2():
        return TokenizerConfig(vocab_size=50257)


class TrainerConfig:
    save_folder: str
    callbacks: dict = {}

    def with_callback(self, name, callback):
        self.callbacks[name] = callback
        return self

    def add_callback(self, name, callback):
        self.callbacks[name] = callback

    def with_callbacks(self, callbacks):
        self.callbacks.update(callbacks)
        return self

    def add_callbacks(self, callbacks):
        self.callbacks.update(callbacks)

    def with_recommended_evals(self, tokenizer, sequence_length, cluster, **others):
        return self


class ExperimentConfig:
    model: object

    def merge(self, overrides, **others):
        return self


# Nodes of Ai2's clusters have 8 GPUs.
class BeakerLaunchConfig:
    name: str = "train"
    num_nodes: int = 1
    num_gpus: int = 8


class TransformerContextParallelConfig:
    degree: int

    @staticmethod
    def zig_zag(degree, head_stride=1):
        return TransformerContextParallelConfig(degree=degree, style="zig_zag", head_stride=head_stride)

    @staticmethod
    def llama3(degree, head_stride=1):
        return TransformerContextParallelConfig(degree=degree, style="llama3", head_stride=head_stride)

    @staticmethod
    def ulysses(degree):
        return TransformerContextParallelConfig(degree=degree, style="ulysses")


class AOFloat8LinearConfig:
    enable_fsdp_float8_all_gather: bool = False

    @staticmethod
    def recommended(**others):
        return AOFloat8LinearConfig(enable_fsdp_float8_all_gather=True, **others)


class AOMXLinearConfig:
    elem_dtype: str = "float8_e4m3fn"

    @staticmethod
    def mxfp8_cublas(**others):
        return AOMXLinearConfig(**others)

    @staticmethod
    def mxfp8_cublas_rceil(**others):
        return AOMXLinearConfig(**others)


class TransformerActivationCheckpointingConfig:
    mode: str = "full"
    block_interval: int = None
    modules: list = None
    activation_memory_budget: float = None
    determinism_check: str = "default"


class TransformerConfig:
    d_model: int

    def with_rope_scaling(self, rope_scaling, full_attn_layers_only=True):
        return self

    @staticmethod
    def llama_like(d_model, vocab_size, n_layers, n_heads, n_kv_heads=None, head_dim=None, gate=None,
                   qk_norm=False, use_head_qk_norm=False, layer_norm_name=None, no_global_rope=False,
                   hidden_size_multiple_of=256, hidden_size_multiplier=None, fused_ops=False, use_flash=None,
                   attn_backend=None, sliding_window=None, block_name="default", block_mods=None,
                   dtype="float32", feed_forward=None, feed_forward_moe=None, rope_type=None, rope_theta=None,
                   rope_full_precision=None, rope_scaling=None, layer_norm_eps=None, **others):
        wide = int(8 * d_model / 3)
        if hidden_size_multiplier is not None:
            wide = int(hidden_size_multiplier * wide)
        wide = (wide + hidden_size_multiple_of - 1) // hidden_size_multiple_of * hidden_size_multiple_of
        kind = layer_norm_name or ("fused_rms" if fused_ops else "rms")
        norm = LayerNormConfig(name=kind, bias=False)
        if feed_forward is None and feed_forward_moe is None:
            feed_forward = FeedForwardConfig(hidden_size=wide, bias=False)
        mixer = AttentionConfig(
            n_heads=n_heads, n_kv_heads=n_kv_heads, head_dim=head_dim, bias=False, gate=gate,
            rope=RoPEConfig(no_global_rope=no_global_rope), qk_norm=norm if qk_norm else None,
            use_head_qk_norm=use_head_qk_norm, use_flash=use_flash, backend=attn_backend,
            sliding_window=sliding_window)
        block = TransformerBlockConfig(name=block_name, sequence_mixer=mixer, feed_forward=feed_forward,
                                       feed_forward_moe=feed_forward_moe, layer_norm=norm)
        return TransformerConfig(d_model=d_model, vocab_size=vocab_size, n_layers=n_layers, block=block,
                                 lm_head=LMHeadConfig(layer_norm=norm, bias=False), dtype=dtype,
                                 block_mods=block_mods, **others)

    @staticmethod
    def llama_like_moe(num_experts, top_k, expert_hidden_size, shared_expert_hidden_size=None, dropless=False,
                       capacity_factor=None, lb_loss_weight=0.01, z_loss_weight=0.001, reordered_norm=False,
                       hybrid=False, qk_norm=None, **others):
        name = TransformerBlockType.moe_hybrid if hybrid else TransformerBlockType.moe
        if reordered_norm:
            name = TransformerBlockType.moe_hybrid_reordered_norm if hybrid else TransformerBlockType.moe_reordered_norm
        shared = None
        if shared_expert_hidden_size is not None:
            shared = FeedForwardConfig(hidden_size=shared_expert_hidden_size, bias=False)
        experts = MoEConfig(name="dropless" if dropless else "default", num_experts=num_experts,
                            hidden_size=expert_hidden_size, capacity_factor=capacity_factor,
                            router=MoERouterConfig(top_k=top_k), shared_mlp=shared)
        return TransformerConfig.llama_like(block_name=name, feed_forward_moe=experts, name="moe",
                                            qk_norm=reordered_norm if qk_norm is None else qk_norm, **others)

    @staticmethod
    def ngpt_like(d_model, vocab_size, n_layers, n_heads, **others):
        return TransformerConfig(name="normalized", d_model=d_model, vocab_size=vocab_size, n_layers=n_layers,
                                 dtype="float32")

    @staticmethod
    def gemma3_like(d_model, vocab_size, n_layers, n_heads, n_kv_heads, hidden_size, head_dim=None, gate=None,
                    activation="gelu_tanh", local_window_size=1024, global_layer_interval=6, fused_ops=False,
                    use_flash=None, attn_backend=None, dtype="float32", **others):
        norm = LayerNormConfig(name="fused_rms" if fused_ops else "rms", bias=False)
        around = AttentionConfig(n_heads=n_heads, n_kv_heads=n_kv_heads, head_dim=head_dim, bias=False, gate=gate,
                                 rope=RoPEConfig(), qk_norm=norm, use_head_qk_norm=True, use_flash=use_flash,
                                 backend=attn_backend)
        near = around.replace(sliding_window=SlidingWindowAttentionConfig(
            pattern=[local_window_size], force_full_attention_on_first_layer=False,
            force_full_attention_on_last_layer=False))
        mlp = FeedForwardConfig(hidden_size=hidden_size, bias=False, activation=activation)
        far = TransformerBlockConfig(name="peri_norm", sequence_mixer=around, feed_forward=mlp, layer_norm=norm)
        pattern = ["local" for i in range(global_layer_interval - 1)] + ["global"]
        return TransformerConfig(d_model=d_model, vocab_size=vocab_size, n_layers=n_layers,
                                 block={"local": far.replace(sequence_mixer=near), "global": far},
                                 block_pattern=pattern, lm_head=LMHeadConfig(layer_norm=norm, bias=False),
                                 dtype=dtype, **others)

    @staticmethod
    def qwen3_5_like(d_model, vocab_size, n_layers, n_heads, n_kv_heads, head_dim, intermediate_size,
                     linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128,
                     linear_value_head_dim=128, linear_conv_kernel_dim=4, tie_word_embeddings=True,
                     use_flash=None, attn_backend=None, dtype="float32", **others):
        norm = LayerNormConfig(name="qwen_rms", bias=False)
        mlp = FeedForwardConfig(hidden_size=intermediate_size, bias=False)
        mixer = GatedDeltaNetConfig(n_heads=linear_num_key_heads, n_v_heads=linear_num_value_heads,
                                    head_dim=linear_key_head_dim,
                                    expand_v=linear_value_head_dim / linear_key_head_dim,
                                    conv_size=linear_conv_kernel_dim)
        around = AttentionConfig(n_heads=n_heads, n_kv_heads=n_kv_heads, head_dim=head_dim, bias=False,
                                 rope=RoPEConfig(), gate=GateConfig(granularity="elementwise"), qk_norm=norm,
                                 use_head_qk_norm=True, use_flash=use_flash, backend=attn_backend)
        gdn = TransformerBlockConfig(name="default", sequence_mixer=mixer, feed_forward=mlp, layer_norm=norm)
        return TransformerConfig(d_model=d_model, vocab_size=vocab_size, n_layers=n_layers,
                                 block={"gdn": gdn, "attn": gdn.replace(sequence_mixer=around)},
                                 block_pattern=["gdn", "gdn", "gdn", "attn"],
                                 lm_head=LMHeadConfig(layer_norm=norm, bias=False), dtype=dtype,
                                 tie_word_embeddings=tie_word_embeddings, **others)


def get_gpu_type(cluster):
    return CLUSTER_TO_GPU_TYPE[cluster]


def build_launch_config(name="train", cluster=None, num_nodes=1, **others):
    return BeakerLaunchConfig(name=name, num_nodes=num_nodes, num_gpus=8, clusters=[cluster])


def build_common_components(cli_context, tokenizer=None, global_batch_size=None, max_sequence_length=4096,
                            num_nodes=1, **others):
    launch = build_launch_config(cluster=cli_context.cluster, num_nodes=num_nodes)
    return CommonComponents(launch=launch, tokenizer=tokenizer, max_sequence_length=max_sequence_length,
                            global_batch_size=global_batch_size)


def build_default_data_components(common, intra_document_masking=False, include_instance_filter=False):
    dataset = NumpyFSLDatasetConfig(sequence_length=common.max_sequence_length,
                                    generate_doc_lengths=intra_document_masking)
    loader = NumpyDataLoaderConfig(global_batch_size=common.global_batch_size)
    return DataComponents(dataset=dataset, data_loader=loader)


def build_config(cli_context, common_config_builder=build_common_components,
                 data_config_builder=build_default_data_components, model_config_builder=None,
                 train_module_config_builder=None, trainer_config_builder=None, finalize_config=None,
                 tokenizer=TokenizerConfig.dolma2(), global_batch_size=None, max_sequence_length=4096,
                 beaker_image=None, num_nodes=1, beaker_workspace=None, flight_recorder=False,
                 num_execution_units=None, include_default_evals=False, **data_kwargs):
    common = common_config_builder(cli_context, tokenizer=tokenizer, global_batch_size=global_batch_size,
                                   max_sequence_length=max_sequence_length, num_nodes=num_nodes)
    data = data_config_builder(common, **data_kwargs)
    config = ExperimentConfig(launch=common.launch, model=model_config_builder(common), dataset=data.dataset,
                              data_loader=data.data_loader, train_module=train_module_config_builder(common),
                              trainer=trainer_config_builder(common))
    if finalize_config is not None:
        finalize_config(config)
    return config


def configure_train_module(max_sequence_length, rank_microbatch_size, learning_rate=None, scheduler=None,
                           float8_enabled=False, activation_memory_budget=1.0, dp_shard_degree=None,
                           cp_degree=None):
    context = None
    if cp_degree:
        context = TransformerContextParallelConfig.llama3(degree=cp_degree, head_stride=4)
    recompute = None
    if activation_memory_budget < 1.0:
        recompute = TransformerActivationCheckpointingConfig(mode="budget",
                                                             activation_memory_budget=activation_memory_budget)
    shards = TransformerDataParallelConfig(name="hsdp", param_dtype="bfloat16", reduce_dtype="float32",
                                           shard_degree=dp_shard_degree)
    return TransformerTrainModuleConfig(
        rank_microbatch_size=rank_microbatch_size, max_sequence_length=max_sequence_length,
        optim=SkipStepAdamWConfig(foreach=True), z_loss_multiplier=1e-5, max_grad_norm=1.0, compile_model=True,
        dp_config=shards, cp_config=context, ac_config=recompute,
        float8_config=Float8Config(enabled=float8_enabled, ao=AOFloat8LinearConfig.recommended()))


def configure_trainer(**settings):
    return TrainerConfig()


def configure_required_callbacks(run_name):
    return {}


def configure_default_callbacks(run_name, **others):
    return {}


# A script hands in one function. It takes the script's options, or the command line. Older scripts hand in one
# function for each part of the configuration.
def main(builder=None, config_builder=None, **settings):
    if builder is not None:
        return builder(Namespace(sequence_length=None), [])
    if config_builder is not None:
        return config_builder(CliContext())
    return build_config(CliContext(), **settings)
