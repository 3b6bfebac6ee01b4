def f():
    cfg = _common()
    cfg.model = Bridge.from_hf("x/y").config()
    cfg.model.tensor_model_parallel_size = max(1, 2)
    cfg.train.global_batch_size = 512
    cfg.optimizer.exp_avg_dtype = torch.float32
    cfg.mixed_precision = bf16_mixed(grad_reduce_in_fp32=False)
    return cfg
