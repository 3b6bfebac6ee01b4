"""step.py [--micro-batch B] [--micro-batches M] [--seq S]: a training step of scenarios/models/gpt-420m.json on one GPU
in PyTorch, to hold against `rehearse execute --model scenarios/models/gpt-420m.json --gpus 1 --device cuda` on the same
GPU. Weights in bf16, gradients summed and Adam's state and master weights in fp32, as Megatron's mixed precision has them;
attention by scaled_dot_product_attention. Prints seconds a step and model FLOPs utilisation, eager and compiled."""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, HIDDEN, HEADS, VOCAB = 8, 2048, 16, 8192
PEAK = 989.5e12  # H100 SXM, bf16 dense (data sheet)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        batch, seq, _ = x.shape
        q, k, v = (part.view(batch, seq, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, seq, HIDDEN))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, seq):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, HIDDEN), nn.Embedding(seq, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN)

    def forward(self, tokens, labels):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, VOCAB).float(), labels.reshape(-1))


def flops_of_step(batch, seq, micro_batches):
    dense = LAYERS * 12 * HIDDEN * HIDDEN + HIDDEN * VOCAB
    attention = LAYERS * 2 * seq * HIDDEN  # two products a token over all keys, though half are masked: as mfu counts
    return 3 * 2 * batch * seq * micro_batches * (dense + attention)


def time_steps(given, compiled):
    torch.manual_seed(0)
    model = Gpt(given.seq).cuda().bfloat16()
    parameters = list(model.parameters())
    masters = [p.detach().float() for p in parameters]
    for master in masters:
        master.grad = torch.zeros_like(master)
    optimizer = torch.optim.Adam(masters, lr=1e-4, fused=True)

    def sum_in_fp32(master):
        def hook(parameter):
            master.grad.add_(parameter.grad)  # fp32 += bf16
            parameter.grad = None
        return hook

    for parameter, master in zip(parameters, masters):
        parameter.register_post_accumulate_grad_hook(sum_in_fp32(master))
    loss_of = torch.compile(model) if compiled else model
    tokens = torch.randint(VOCAB, (given.micro_batches, given.micro_batch, given.seq + 1), device="cuda")
    times = []
    for step in range(given.warmup + given.steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for part in tokens:
            (loss_of(part[:, :-1], part[:, 1:]) / given.micro_batches).backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(parameters, masters)
            torch._foreach_zero_([master.grad for master in masters])
        torch.cuda.synchronize()
        if step >= given.warmup:
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for flag, usual in (("micro-batch", 1), ("micro-batches", 16), ("seq", 2048), ("warmup", 3), ("steps", 7)):
        parser.add_argument(f"--{flag}", type=int, default=usual)
    parser.add_argument("--eager-only", action="store_true")
    given = parser.parse_args()
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    flops = flops_of_step(given.micro_batch, given.seq, given.micro_batches)
    for compiled in (False,) if given.eager_only else (False, True):
        took = time_steps(given, compiled)
        print(f"{'compiled' if compiled else 'eager':9} {took * 1e3:9.2f} ms a step, "
              f"{given.micro_batch * given.seq * given.micro_batches / took:10.0f} tokens/s, MFU {flops / took / PEAK:6.4f}",
              flush=True)


main()
