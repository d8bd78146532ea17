#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's times for what bench/kernels measures: selection and Muon. One JSON row a line: name, peer, peer_name, unit.

Medians of 15 runs with random data and an L2 cache full of other memory, as ours; recorded as CUDA graphs where that
works.
"""
import json
import statistics

import torch

flush = torch.randn(128 << 20, device="cuda")


def milliseconds(run, graph, runs=15, warm=3):
    if graph:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(2):
                run()
        torch.cuda.synchronize()
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            run()
        run = recorded.replay
    times = []
    for _ in range(warm + runs):
        flush.sum()  # reads, so that nothing is left to be written back
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
    return statistics.median(times[warm:])


def measure(name, run, scale, unit, peer_name):
    for graph in (True, False):
        try:
            value = milliseconds(run, graph) * scale
        except RuntimeError as error:
            print(f"# {name}: {'graph' if graph else 'plain'} failed: {str(error).splitlines()[0]}", flush=True)
            continue
        how = ", CUDA graph" if graph else ""
        print(json.dumps({"name": name, "peer": round(value, 4), "peer_name": peer_name + how, "unit": unit}), flush=True)
        return


def main():
    torch.manual_seed(1)
    for batch in (1, 8):
        logits = torch.randn(batch, 32768, device="cuda")
        measure(f"select/4096of32768/x{batch}", lambda x=logits: torch.topk(x, 4096, sorted=False).indices.sort().values,
                1e3, "us", "torch.topk and sort")
    if hasattr(torch.optim, "Muon"):
        count = 4
        weights = [torch.nn.Parameter(torch.randn(1024, 3072, device="cuda")) for _ in range(count)]
        for w in weights:
            w.grad = torch.randn_like(w)
        # The whole step, and with one Newton-Schulz step instead of five: four of them are the difference.
        times = {}
        for steps in (5, 1):
            optimiser = torch.optim.Muon(weights, lr=1e-3, ns_steps=steps)
            times[steps] = milliseconds(optimiser.step, False) / count
        print(json.dumps({"name": "newton_schulz/1024x3072", "peer": round((times[5] - times[1]) * 5 / 4, 4),
                          "peer_name": "torch.optim.Muon, its Newton-Schulz steps", "unit": "ms"}), flush=True)
        print(json.dumps({"name": "muon_step/1024x3072", "peer": round(times[5], 4), "peer_name": "torch.optim.Muon",
                          "unit": "ms"}), flush=True)


if __name__ == "__main__":
    main()
