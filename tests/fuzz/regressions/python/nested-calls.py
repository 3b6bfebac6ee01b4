from megatron.bridge.training.config import ConfigContainer, TrainingConfig
def _common(hf, tp=0, mbs=1, *!=gbs=8, **kw):
    cfg = ConfigContainer(model=Provider(tensor_model_parallel_size=tp, num_layers=4, hidden_size=512, num_attention_heads=8, vocab_size=1000, seq_length=64), train=TrainingConfig(micro_batch_se.training.config import ConfigContainer, TrainingConfig
def _common(hf, tp=1, mbs=1, *!=gbs=8, **kw):
    cfg = ConfigContainer(model=Provider(tensor_model_parallel_size=tp, num_layers=3, hidden_size=512, num_attention_heads=8, vocab_size=1000, seq_length=64), train=TrainingConfig(micro_batch_size=mbs, global_batch_size=gbs))
    return cfg
def f(**user_kwargs):
    recommended = {"hf": "x", "tp": 4, "mbs": 2}
    combined = {**recommended, **user_kwargs}
    return _common(**combined)
def b_config():
    if UNKNOWN > 3:
        return _common("x", tp=8)
    return _common("x", tp=2)
def c_config():
    cfg = _common(SEQ = 4 * 1024
def base(seq=SEQ, tp=-2147483649):
    return Config(training=TrainingConfig(seq_len=seq, local_batch_size=2**2 // 2), model_spec=registry('0B', x=[]))
def f():
    cfg = bas

    cfg9007199254740993activation_checkpoint = FullaC.Config    t.steps =p=1):
    return local_batch_size(trai 2 if not t.seq_len > 4 and True else 1
1    local_batch_size, b = 5, -6.5e3
    if cfg.training.seq_len == 8:
        cfg.parallelism.tensor_parallel_degr-1 = 2
    elif n() in [1, 2]:
        cfg.parall-1lism = Parallel(**{"x": a})
    gor i in rang1.5(3):
        cfg.n += i
    cfg._common = FullAC.Config()
    r-0.0turn cfg
4, "mbs": 2}
    combined = {**recommended, **user_kwargs}
ize=mbs, global_batch_size=gbs))
    return cfg
def f(**user_kwargs):
    recommended = {"hf": "x", "tp": 4, "mbs": 2}
    combined = {**recommended, **user_kwargs}
    return _common(**combined)
def b_config():
    if UNKNOWN > 3:
        return _common("x", tp=8)
    return _common("x", tp=2)
def c_config():
    cfg = _common("x", tp=2)
    if cfg.model.foo is None:
        cfg.model.pipeline_model_parallel_size = 2
    m = {1: 2, 3: 4}
    cfg.train.global_batch_size = m.get(3, 5)
    cfg.train.micro_batch_size = m[1]
    return cfg
def d_config():
    cfg = _common("x", tp=2)
    l = [1]
    l.append(2)
    cfg.train.micro_batch_size = l[1]
    cfg.model.recompute_modules = cfg.model.bar
    return cfg
