#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One training step of the same small dense model here and in PyTorch, alternating in one run.

    step.py build/bench/host_step/host_step [--threads 2] [--steps 10] [--rounds 3]

Width 256, 8 layers, 4 heads of 64 with QK-norm and rotary phases, SwiGLU of 768, 256 byte tokens, 8 sequences of 512;
fp32, AdamW, clipping. Prints both least steps, their ratio, and where our time went. Exit code 1 if ours takes more
than 1.5 times PyTorch's, 4 (skipped) without PyTorch.
"""
import argparse
import json
import subprocess
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(4)

WIDTH, LAYERS, HEADS, HEAD, HIDDEN, VOCAB, SEQ, BATCH = 256, 8, 4, 64, 768, 256, 512, 8


class RmsNorm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        if hasattr(F, "rms_norm"):
            return F.rms_norm(x, x.shape[-1:], self.weight, 1e-6)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def attention(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    logits = q @ k.transpose(-1, -2) / HEAD**0.5
    mask = torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1)
    return torch.softmax(logits.masked_fill(mask, float("-inf")), -1) @ v


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        def linear(i, o):
            return torch.nn.Linear(i, o, bias=False)
        self.q, self.k, self.v = (linear(WIDTH, HEADS * HEAD) for _ in range(3))
        self.o = linear(HEADS * HEAD, WIDTH)
        self.gate, self.up, self.down = linear(WIDTH, HIDDEN), linear(WIDTH, HIDDEN), linear(HIDDEN, WIDTH)
        self.norm_a, self.norm_f, self.norm_q, self.norm_k = RmsNorm(WIDTH), RmsNorm(WIDTH), RmsNorm(HEAD), RmsNorm(HEAD)

    def forward(self, x, cosine, sine):
        def heads(y):
            return y.view(BATCH, SEQ, HEADS, HEAD).transpose(1, 2)
        def turn(y):
            low, high = y.chunk(2, -1)
            return y * cosine + torch.cat((-high, low), -1) * sine
        y = self.norm_a(x)
        q, k, v = turn(self.norm_q(heads(self.q(y)))), turn(self.norm_k(heads(self.k(y)))), heads(self.v(y))
        x = x + self.o(attention(q, k, v).transpose(1, 2).reshape(BATCH, SEQ, HEADS * HEAD))
        y = self.norm_f(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(VOCAB, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = RmsNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, VOCAB, bias=False)
        angle = torch.arange(SEQ)[:, None] * 1e6 ** (-torch.arange(0, HEAD, 2) / HEAD)[None]
        self.cosine, self.sine = torch.cat((angle.cos(),) * 2, -1), torch.cat((angle.sin(),) * 2, -1)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, self.cosine, self.sine)
        return self.head(self.norm(x))


def torch_steps(net, optimiser, count):
    tokens, targets = torch.randint(VOCAB, (2, BATCH, SEQ))
    times = []
    for _ in range(count + 1):
        start = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        F.cross_entropy(net(tokens).view(-1, VOCAB), targets.view(-1)).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        times.append(1e3 * (time.perf_counter() - start))
    return min(times[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    net = Net()
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(.9, .95), eps=1e-8, weight_decay=.1)
    ours, theirs = [], []
    for _ in range(args.rounds):
        theirs.append(torch_steps(net, optimiser, args.steps))
        line = subprocess.run([args.program, str(args.threads), str(args.steps)], check=True, capture_output=True, text=True)
        ours.append(json.loads(line.stdout))
    best = min(ours, key=lambda o: o["least"])
    print(f"PyTorch {torch.__version__}, {args.threads} threads: ms of each round " + ", ".join(f"{t:.1f}" for t in theirs))
    print("sdepth: " + ", ".join(f"{o['least']:.1f}" for o in ours))
    print("of which, ms: " + ", ".join(f"{k} {v}" for k, v in best.items()))
    ratio = best["least"] / min(theirs)
    print(f"sdepth / PyTorch: {ratio:.3f} (at most 1.5)")
    return 1 if ratio > 1.5 else 0


if __name__ == "__main__":
    sys.exit(main())
