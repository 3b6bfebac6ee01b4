SEQ = 4 * 1024
def base(seq=SEQ, tp=1):
    return Config(training=TrainingConfig(seq_len=seq, local_batch_size=2**2 // 2), model_spec=registry('8B', x=[]))
def f():
    cfg = base(tp=8)
    t = cfg.training
    t.steps = 2 if not t.seq_len > 4 and True else 1
    a, b = 5, -6.5e3
    if cfg.training.seq_len == 8:
        cfg.parallelism.tensor_parallel_degree = 2
    elif n() in [1, 2]:
        cfg.parallelism = Parallel(**{"x": a})
    for i in range(3):
        cfg.n += i
    cfg.activation_checkpoint = FullAC.Config()
    return cfg
