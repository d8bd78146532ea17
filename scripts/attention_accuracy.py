#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Errors of our attention kernels beside cuDNN's (through PyTorch), both against fp64, over five seeds:
attention_accuracy.py BENCH_PROGRAM. At 8192 rows the forward has its tile for long sequences, and all processors more
than one item of each kernel. Prints a line for each of o, grad_q, grad_k and grad_v, and the largest quotients as JSON
rows for scripts/bench_merge.py. Exit code 1 if an rms error is above 1.05 times cuDNN's, or a largest one above 1.5.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

HEADS, KV_HEADS = 16, 8
NAMES = ("o", "grad_q", "grad_k", "grad_v")
LIMITS = {"rms": 1.05, "largest": 1.5}


def reference(q, k, v, g):
    """fp64, causal; [head, row, dim]. A KV head at a time, to save memory."""
    rows, group = q.shape[1], HEADS // KV_HEADS
    hidden = torch.ones(rows, rows, device="cuda", dtype=torch.bool).triu(1)
    parts = []
    for one in zip(*(x.double().split(n) for x, n in ((q, group), (k, 1), (v, 1), (g, group)))):
        a, b, c = (x.requires_grad_() for x in one[:3])
        s = (a @ b.transpose(1, 2) / a.shape[-1] ** 0.5).masked_fill(hidden, float("-inf"))
        o = s.softmax(-1) @ c
        parts.append((o.detach(), *torch.autograd.grad(o, (a, b, c), one[3])))
    return [torch.cat(x) for x in zip(*parts)]


def cudnn(q, k, v, g):
    q, k, v = (x[None].contiguous().requires_grad_() for x in (q, k, v))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        grads = torch.autograd.grad(o, (q, k, v), g[None].contiguous())
    return o.detach()[0], *(x[0] for x in grads)


def dumped(program, seed, length, dim):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "--dump", folder, str(seed), str(length), str(dim)], check=True)
        raw = {p.name: torch.frombuffer(bytearray(p.read_bytes()), dtype=torch.bfloat16)
               for p in pathlib.Path(folder).iterdir()}
    return {name: x.view(length, -1, dim).transpose(0, 1).cuda() for name, x in raw.items()}


def compare(program, length, dim) -> bool:
    ours, theirs = {n: [] for n in NAMES}, {n: [] for n in NAMES}
    for seed in range(1, 6):
        x = dumped(program, seed, length, dim)
        inputs = [x[n] for n in ("q", "k", "v", "grad_o")]
        for name, want, peer in zip(NAMES, reference(*inputs), cudnn(*inputs)):
            for errors, got in ((ours, x[name]), (theirs, peer)):
                e = got.double() - want
                errors[name].append((float(e.square().mean().sqrt()), float(e.abs().max())))
    worst = dict.fromkeys(LIMITS, 0.0)
    for name in NAMES:
        line = []
        for i, kind in enumerate(LIMITS):
            a, b = (max(e[i] for e in errors[name]) for errors in (ours, theirs))
            worst[kind] = max(worst[kind], a / b)
            line.append(f"{kind} {a:.3e} / {b:.3e} = {a / b:.3f}")
        print(f"{length} d{dim} {name}: {', '.join(line)}", flush=True)
    for kind, times in worst.items():
        print(json.dumps({"name": f"attention/error/{kind}/1x{length}/q{HEADS}k{KV_HEADS}/d{dim}", "ours": round(times, 3),
                          "unit": "times", "peer": 1, "peer_name": "torch SDPA, cuDNN", "ratio": round(1 / times, 4)}))
    return all(worst[kind] <= limit for kind, limit in LIMITS.items())


def main() -> int:
    good = [compare(sys.argv[1], length, dim) for length in (1536, 8192) for dim in (64, 128)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
