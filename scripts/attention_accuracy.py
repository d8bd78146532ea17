#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Errors of our attention kernels beside cuDNN's (through PyTorch), both against fp64, over five seeds:
attention_accuracy.py BENCH_PROGRAM. Exit code 1 if our rms error is above 1.05 times cuDNN's, or our largest above 1.5
times, for any of o, grad_q, grad_k, grad_v.
"""
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

LENGTH, HEADS, KV_HEADS = 1536, 16, 8


def reference(q, k, v, g):
    """fp64, causal; [head, row, dim]."""
    group = HEADS // KV_HEADS
    q, k, v, g = (x.double() for x in (q, k, v, g))
    q, k, v = q.requires_grad_(), k.requires_grad_(), v.requires_grad_()
    s = q @ k.repeat_interleave(group, 0).transpose(1, 2) / q.shape[-1] ** 0.5
    s = s.masked_fill(torch.ones(LENGTH, LENGTH, device="cuda", dtype=torch.bool).triu(1), float("-inf"))
    o = s.softmax(-1) @ v.repeat_interleave(group, 0)
    return o.detach(), *torch.autograd.grad(o, (q, k, v), g)


def cudnn(q, k, v, g):
    q, k, v = (x[None].contiguous().requires_grad_() for x in (q, k, v))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        grads = torch.autograd.grad(o, (q, k, v), g[None].contiguous())
    return o.detach()[0], *(x[0] for x in grads)


def main() -> int:
    good = True
    for dim in (64, 128):
        ours, theirs = {}, {}
        for seed in range(1, 6):
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run([sys.argv[1], "--dump", folder, str(seed), str(LENGTH), str(dim)], check=True)
                x = {}
                for path in pathlib.Path(folder).iterdir():
                    raw = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.bfloat16)
                    x[path.name] = raw.view(LENGTH, -1, dim).transpose(0, 1).cuda()
            inputs = [x[n] for n in ("q", "k", "v", "grad_o")]
            want, peer = reference(*inputs), cudnn(*inputs)
            for name, w, p in zip(("o", "grad_q", "grad_k", "grad_v"), want, peer):
                for errors, got in ((ours, x[name]), (theirs, p)):
                    e = got.double() - w
                    errors.setdefault(name, []).append((float(e.square().mean().sqrt()), float(e.abs().max())))
        for name in ours:
            rms = [max(r for r, _ in e[name]) for e in (ours, theirs)]
            top = [max(m for _, m in e[name]) for e in (ours, theirs)]
            print(f"d{dim} {name}: rms {rms[0]:.3e} / {rms[1]:.3e} = {rms[0] / rms[1]:.3f}, "
                  f"largest {top[0]:.3e} / {top[1]:.3e} = {top[0] / top[1]:.3f}")
            good &= rms[0] <= 1.05 * rms[1] and top[0] <= 1.5 * top[1]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
