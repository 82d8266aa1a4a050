"""Ceilings of the GPU by PyTorch: a copy of 1 GiB, and products of the shapes of an 8B model in bf16: python3 products.py

Weights rotate through more than the second cache holds, as a model's layers do. Prints one JSON line a shape: m rows, n x k weights.
"""
import json

import torch

SHAPES = {"qkv": (6144, 4096), "output": (4096, 4096), "gate and up": (28672, 4096), "down": (4096, 14336), "head": (128256, 4096)}
ROWS = [1, 64, 512, 1024, 8192]
# Bytes that weights rotate through.
ROTATED = 512 << 20


def seconds(work, times):
    """Seconds of one of `times` calls, the median of five rounds."""
    rounds = []
    for _ in range(5):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for i in range(times):
            work(i)
        end.record()
        end.synchronize()
        rounds.append(begin.elapsed_time(end) / 1e3 / times)
    return sorted(rounds)[2]


def main():
    torch.manual_seed(1)
    a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
    b = torch.empty_like(a)
    s = seconds(lambda i: b.copy_(a), 8)
    print(json.dumps({"copy_bytes": 1 << 30, "seconds": s, "tb_per_s": 2 * (1 << 30) / s / 1e12, "torch": torch.__version__}), flush=True)
    del a, b
    for name, (n, k) in SHAPES.items():
        copies = max(1, ROTATED // (2 * n * k))
        weights = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) * 0.02 for _ in range(copies)]
        for m in ROWS:
            if name == "head" and m > 1024:
                continue
            x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
            y = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            work = lambda i: torch.mm(x, weights[i % copies].t(), out=y)
            work(0)
            torch.cuda.synchronize()
            s = seconds(work, 4 if m > 1024 else 16)
            print(json.dumps({"shape": name, "m": m, "n": n, "k": k, "seconds": s, "tflops": 2 * m * n * k / s / 1e12, "tb_per_s": 2 * (n * k + m * k + m * n) / s / 1e12}), flush=True)
        del weights


main()
