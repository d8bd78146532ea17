#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Merges bench rows into a results file: bench_merge.py RESULTS.json CARD DRIVER COMMIT OURS.log... [--peers PEERS.log]

OURS: one JSON object a line (`name`, `ours`, `unit`, ...), as the programs in bench/kernels print. PEERS: lines such as
`attn B1 L4096 H16/8 d128 cudnn: fwd 0.17 ms 394 TFLOP/s | bwd 0.59 ms 293 TFLOP/s`, training steps such as `TRAIN 556M
dense bs1 L32768 ...: ... 1125.0 ms/step  29.1 ktok/s  peak 51.0 GiB`, of which the fastest mode counts, and JSON objects
with `name`, `peer` and `peer_name`. A row of the results is replaced by
name: name, ours, peer, peer_name, unit, ratio (above 1 = ours ahead; peer / ours where less is better), card, driver,
commit. Rows without a peer keep the one they had.
"""
import json
import pathlib
import re
import sys

PEER = re.compile(r"attn B(\d+) L(\d+) H(\d+)/(\d+) d(\d+) (\w+): fwd ([\d.]+) ms (\d+) TFLOP/s \| bwd ([\d.]+) ms")
TRAIN = re.compile(r"TRAIN (\S+) (\S+) bs(\d+) L(\d+) .*?([\d.]+) ms/step\s+([\d.]+) ktok/s")
KEPT = ("ms", "least_ms", "most_ms", "forward_backward_ms", "optimiser_ms", "mfu")  # of rows of whole steps
MODA_OVERHEAD = {4096: 0.3488, 16384: 0.0939, 65536: 0.0280}  # the paper's depth time over FA2's


def peer_times(lines):
    """(batch, length, heads, kv_heads, dim, kind) -> forward, backward milliseconds."""
    times = {}
    for line in lines:
        m = PEER.search(line)
        if m:
            times[(*map(int, m.groups()[:5]), m.group(6))] = float(m.group(7)), float(m.group(9))
    return times


def peer_rows(lines):
    """name -> peer and peer_name."""
    rows = (json.loads(line) for line in lines if line.startswith("{"))
    known = {r["name"]: {"peer": r["peer"], "peer_name": r["peer_name"]} for r in rows if "peer" in r}
    for m in filter(None, map(TRAIN.search, lines)):
        name = f"step/{m.group(1)}/{m.group(2)}/{m.group(3)}x{m.group(4)}"
        rate = round(int(m.group(3)) * int(m.group(4)) / float(m.group(5)) * 1000)
        if rate > known.get(name, {"peer": 0})["peer"]:
            known[name] = {"peer": rate, "peer_name": "torch.compile, cuDNN attention, fused AdamW, CUDA graph"}
    return known


def with_peer(row, times):
    """Adds peer, peer_name and ratio where a peer is known; may replace the row's unit and number."""
    m = re.fullmatch(r"(attention|attention_portable)/(\S+?)/(\d+)x(\d+)/q(\d+)k(\d+)/d(\d+)", row["name"])
    if m:
        kind = "flash" if m.group(1) == "attention_portable" else "cudnn"
        b, length, h, hk, d = map(int, m.groups()[2:])
        if (b, length, h, hk, d, kind) in times:
            fwd, bwd = times[(b, length, h, hk, d, kind)]
            flops = 2 * b * h * d * length * length
            part = {"fwd": (flops, fwd), "bwd": (2.5 * flops, bwd), "fwd+bwd": (3.5 * flops, fwd + bwd)}[m.group(2)]
            name = "torch SDPA, FlashAttention-2" if kind == "flash" else "torch SDPA, cuDNN"
            row.update(peer=round(part[0] / part[1] / 1e9, 1), peer_name=name)
            row["ratio"] = round(row["ours"] / row["peer"], 4)
    if row["name"].startswith("moda/depth_over_bytes/"):
        row.update(peer=1, peer_name="byte bound at the copy rate", ratio=round(1 / row["ours"], 4))
    return row


def main(argv):
    results, card, driver, commit, *logs = argv
    peers = logs[logs.index("--peers") + 1:] if "--peers" in logs else []
    logs = logs[:logs.index("--peers")] if peers else logs
    peer_lines = [line for p in peers for line in pathlib.Path(p).read_text().splitlines()]
    times, known = peer_times(peer_lines), peer_rows(peer_lines)
    rows = []
    for log in logs:
        for line in pathlib.Path(log).read_text().splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                rows.append(with_peer({**row, **known.get(row["name"], {})}, times))
    for row in list(rows):
        m = re.fullmatch(r"moda/depth_ms/T(\d+)", row["name"])
        key = (1, int(m.group(1)), 64, 8, 64, "cudnn") if m else None
        if key in times and key[1] in MODA_OVERHEAD:
            share, peer = row["ours"] / sum(times[key]), MODA_OVERHEAD[key[1]]
            rows.append({"name": f"moda/extra_over_cudnn/T{key[1]}", "ours": round(share, 4), "peer": peer,
                         "peer_name": "the paper's overhead over FA2", "unit": "share", "ratio": round(peer / share, 4)})
    path = pathlib.Path(results)
    table = {r["name"]: r for r in json.loads(path.read_text())} if path.exists() else {}
    for row in rows:
        old = table.get(row["name"], {})
        new = {"name": row["name"], "ours": row["ours"], "peer": row.get("peer", old.get("peer")),
               "peer_name": row.get("peer_name", old.get("peer_name")), "unit": row["unit"]}
        less = row["unit"] in ("ms", "us") or (row["unit"] == "share" and row["name"].startswith("moda/"))
        new["ratio"] = row.get("ratio") or (None if new["peer"] is None else round(
            new["peer"] / row["ours"] if less else row["ours"] / new["peer"], 4))
        new.update({key: row[key] for key in KEPT if row["name"].startswith("step/") and key in row})
        table[row["name"]] = {**new, "card": card, "driver": driver, "commit": commit}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(r) for r in sorted(table.values(), key=lambda r: r["name"])) + "\n]\n")


if __name__ == "__main__":
    main(sys.argv[1:])
