from olmo_core.internal.experiment import build_config, main
class Own(Config):
    seq: int = 4096
    sizes: list = field(default_factory=list)
    @classmethod
    def build(cls, n, *, nodes=2, **rest):
        return cls(seq=n * 2, **rest)
    @property
    def half(self):
        return self.seq // 2
def model(common):
    config = TransformerConfig.olmo3_7B(vocab_size=common.tokenizer.padded_vocab_size(), n_layers=8)
    config.d_model -= 2 * 128
    config.block.sequence_mixer.n_heads = 30
    attn = config.block
    gdn = attn.replace(sequence_mixer=GatedDeltaNetConfig(n_heads=30, head_dim=96))
    config.block = {"gdn": gdn, "attn": attn}
    config.block_pattern = ["gdn"] * 3 + [x for x in ["attn", "no"] if "a" in x]
    return config
def module(common):
    gpus = {CLUSTER_TO_GPU_TYPE.get(c, "?") for c in common.launch.clusters}
    size = common.max_sequence_length * (2 if all("B200" in g for g in gpus) else 1)
    return TransformerTrainModuleConfig(
        rank_microbatch_size=8192, max_sequence_length=Own.build(2048).seq, compile_model=True,
        optim=SkipStepAdamWConfig(lr=1e-4, compile=True), max_grad_norm=1.0,
        dp_config=TransformerDataParallelConfig(name=DataParallelType.hsdp, shard_degree=8, param_dtype=DType.bfloat16),
        cp_config=TransformerContextParallelConfig.llama3(degree=2, head_stride=4),
        ac_config=TransformerActivationCheckpointingConfig(mode="selected_modules",
            modules=[f"blocks.{i}.feed_forward" for i in range(8)]),
        float8_config=Float8Config(ao=AOFloat8LinearConfig.recommended()))
def trainer(common):
    return TrainerConfig(save_folder="x").with_callback("a", BatchSizeSchedulerCallback(sizes=[1, 2]))
if __name__ == "__main__":
    main(config_builder=partial(build_config, global_batch_size=64 * 4096, max_sequence_length=4096, num_nodes=2,
                                model_config_builder=model, train_module_config_builder=module,
                                trainer_config_builder=trainer))
