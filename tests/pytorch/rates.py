"""rates.py PROFILE: how fast does PyTorch run the products, attention and passes over memory
that PROFILE holds, on the GPU that it was taken on? Prints both times of each, and per kind the median of theirs / ours:
above 1 our kernels are faster. Run both in one session on an idle GPU: clocks differ from one to the next."""
import argparse
import json
import statistics

import torch
import torch.nn.functional as F

CACHE_BYTES = 2 * 50e6  # operands rotate through more than the last-level cache, as in calibrate
SHORTEST_S = 2e-3       # of a sample
BUDGET_S = 0.05

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def seconds(sets):
    """Median time of a launch, launched as a CUDA graph, so that no time of the host is in it; each of `sets` is a function
    of no arguments."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def time_of(run):
        start.record()
        run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3

    apart = torch.cuda.Stream()
    with torch.cuda.stream(apart):  # what is captured must have run before
        for one in sets[:3]:
            one()
        once = min(time_of(sets[0]) for _ in range(3))
    torch.cuda.synchronize()
    launches = int(min(max(SHORTEST_S / once, len(sets)), 1024))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            sets[i % len(sets)]()
    time_of(graph.replay)
    samples, passed = [], 0.0
    while passed < BUDGET_S or len(samples) < 5:
        samples.append(time_of(graph.replay) / launches)
        passed += samples[-1] * launches
    return statistics.median(samples)


def copies_of(make, set_bytes):
    return [make() for _ in range(int(min(max(-(-CACHE_BYTES // set_bytes), 1), 256)))]


def product(kind, m, n, k, dtype):
    """Forward x w^T + bias, input gradient dy w, weight gradient: dy^T x, added to fp32 in a pass of its own."""
    def make():
        if kind == "weight_gradient":
            a, b = torch.randn(k, m, device="cuda", dtype=dtype), torch.randn(k, n, device="cuda", dtype=dtype)
            out, total = torch.empty(m, n, device="cuda", dtype=dtype), torch.zeros(m, n, device="cuda")
            def run():
                torch.mm(a.t(), b, out=out)
                total.add_(out)
            return run
        a, out = torch.randn(m, k, device="cuda", dtype=dtype), torch.empty(m, n, device="cuda", dtype=dtype)
        if kind == "input_gradient":
            b = torch.randn(k, n, device="cuda", dtype=dtype)
            return lambda: torch.mm(a, b, out=out)
        b, bias = torch.randn(n, k, device="cuda", dtype=dtype), torch.randn(n, device="cuda", dtype=dtype)
        return lambda: torch.addmm(bias, a, b.t(), out=out)
    return seconds(copies_of(make, (m * k + k * n + m * n) * dtype.itemsize))


def attention(head_dim, seq, causal, backward, heads, dtype):
    """FLOP/s of scaled_dot_product_attention: 2 products of seq^2 / 2 pairs forward, 5 backward; queries, keys and values
    lie in one matrix, as a linear layer makes them. Forward keeps what its backward pass needs, as in training; the
    backward's time is that of both passes less the forward's."""
    def make(both):
        qkv = torch.randn(1, seq, 3, heads, head_dim, device="cuda", dtype=dtype, requires_grad=True)
        dy = torch.randn(1, seq, heads, head_dim, device="cuda", dtype=dtype).transpose(1, 2)

        def run():
            q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
            out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            if both:
                torch.autograd.grad(out, (q, k, v), dy)
        return run
    size = 4 * heads * seq * head_dim * dtype.itemsize
    products, took = 2, seconds(copies_of(lambda: make(False), size))
    if backward:
        products, took = 5, seconds(copies_of(lambda: make(True), 3 * size)) - took
    return products * 2 * heads * seq * seq * head_dim * (0.5 if causal else 1) / took


def copy_rate(total):
    """Bytes read and written a second by a copy that moves so many."""
    count = int(total // 4)
    pairs = copies_of(lambda: (torch.randn(count, device="cuda").bfloat16(), torch.empty(count, device="cuda",
                               dtype=torch.bfloat16)), total)
    return total / seconds([lambda a=a, b=b: b.copy_(a) for a, b in pairs])


def rows_of(table):
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile")
    parser.add_argument("--most", type=int, default=40, help="rows of a kind that are timed: those that take longest")
    given = parser.parse_args()
    with open(given.profile, encoding="utf-8") as file:
        profile = json.load(file)
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "cuDNN", torch.backends.cudnn.version())
    summary = {}

    def show(kind, what, ours, theirs):
        print(f"{kind:24} {what:34} ours {ours:11.4g}  PyTorch {theirs:11.4g}  ratio {theirs / ours:6.3f}")
        summary.setdefault(kind, []).append(theirs / ours)

    for name, table in profile["gemm"].items():
        precision, _, kind = name.partition("/")
        if precision not in TYPES or "grouped" in kind or "align" in kind:
            continue
        rows = [row for row in rows_of(table) if row.get("batch", 1) == 1]
        for row in sorted(rows, key=lambda r: -r["seconds"])[:given.most]:
            theirs = product(kind, row["m"], row["n"], row["k"], TYPES[precision])
            show(name, f"{row['m']} x {row['n']} x {row['k']}, s", row["seconds"], theirs)
    for row in rows_of(profile["attention"]):
        rate = attention(row["head_dim"], row["seq"], bool(row["causal"]), bool(row["backward"]), row.get("heads", 16),
                         torch.bfloat16)
        ours = next(value for key, value in row.items() if "flop" in key)
        name = "attention backward" if row["backward"] else "attention forward"
        show(name, f"{row['head_dim']} wide, {row['seq']} keys, 1/FLOP/s", 1 / ours, 1 / rate)
    for name, table in profile["stream"].items():
        for row in sorted(rows_of(table), key=lambda r: -r["bytes"])[:6]:
            ours = next(value for key, value in row.items() if "per_second" in key or "per_s" in key or "rate" in key)
            show(f"{name} against a copy", f"{row['bytes'] / 1e6:.4g} MB, s", row["bytes"] / ours,
                 row["bytes"] / copy_rate(row["bytes"]))
    print("\nmedian of PyTorch's time over ours, least, most, count:")
    for kind, ratios in summary.items():
        print(f"{kind:40} {statistics.median(ratios):6.3f} {min(ratios):6.3f} {max(ratios):6.3f} {len(ratios):4}")


main()
