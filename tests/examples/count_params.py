#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds examples/count_params.cpp with one compiler call, runs it, and compares its lines with what the papers print.

usage: count_params.py COMPILER SOURCE INCLUDE_DIR...
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

KEYS = ["preset", "layers", "ffn_layers", "paper_params", "total_params", "active_params", "paper_flops_per_token",
        "training_flops_per_token", "kv_bytes_per_token", "digest"]

# X-MoD paper, Tables 1, 2, 6, 7, 9 and 11: depth, parameters and FLOPs of a token as printed. The integers instead of
# three printed totals and two labels are counts that tests/static/x_mod_parameters.cpp gives the reasons for.
X_MOD = {
    "556M/dense": (28, "0.54B", "8.4e9"), "556M/mod": (49, "0.87B", "7.7e9"), "556M/moe64": (28, "2.46B", "8.4e9"),
    "556M/a4k8": (161, "2.64B", "3.9e9"), "556M/moe128": (28, "4.58B", "8.4e9"), "556M/a3k16": (298, "4.79B", "3.9e9"),
    "936M/dense": (28, 914082816, "9.0e9"), "936M/mod": (49, "1.48B", "8.3e9"), "936M/moe64": (28, "4.51B", "9.0e9"),
    "936M/a4k8": (161, "4.52B", "4.6e9"), "936M/moe128": (28, "8.48B", "9.0e9"), "936M/a3k16": (298, "8.24B", "4.5e9"),
    "1.65B/dense": (28, 1615138816, "1.0e10"), "1.65B/mod": (49, "2.67B", "9.6e9"),
    "1.65B/moe64": (28, "9.28B", "1.0e10"), "1.65B/a4k8": (161, "8.31B", "5.9e9"),
    "1.65B/moe128": (28, 17741189120, "1.0e10"), "1.65B/a3k16": (298, 15204683776, "5.8e9"),
    "936M/routed_ffn_a4k8": (161, 3267480576, "9.0e9"), "936M/routed_ffn_a3k16": (298, 5691657216, "9.0e9"),
    "936M/selected_q_a4k8": (161, "4.52B", None), "936M/selected_q_a3k16": (298, "8.24B", None),
    "deep/dense": (52, "0.256B", None), "deep/a1k4": (124, 539051008, None), "deep/a1k8": (220, 916538368, None),
    "deep/a1k12": (316, "1.29B", None), "deep/a1k16": (412, "1.67B", None),
}
# phi / phi_D of the same tables.
RATIOS = {"556M/mod": "0.92", "556M/a4k8": "0.47", "556M/a3k16": "0.46", "556M/moe64": "1.00", "556M/moe128": "1.00",
          "936M/mod": "0.92", "936M/a4k8": "0.51", "936M/a3k16": "0.50", "936M/moe64": "1.00", "936M/moe128": "1.00",
          "1.65B/mod": "0.93", "1.65B/a4k8": "0.57", "1.65B/a3k16": "0.56", "1.65B/moe64": "1.00",
          "1.65B/moe128": "1.00", "936M/routed_ffn_a4k8": "1.00", "936M/routed_ffn_a3k16": "1.00",
          "936M/selected_q_a4k8": "1.09", "936M/selected_q_a3k16": "1.19",
          "deep/a1k4": "0.67", "deep/a1k8": "0.62", "deep/a1k12": "0.60", "deep/a1k16": "0.59"}
# MoDA paper, Tables 3 and 6: millions of parameters, norms included.
MODA = {"moda/36": "669.0", "moda/38": "700.5", "moda/36+kv": "669.0", "moda/36+ffn_kv": "705.7",
        "moda/36+ffn_kv+attention_kv": "742.4", "moda/small48": "123.38", "moda/small48+ffn_kv": "128.11",
        "moda/small24": "71.35"}
NARROW = [f"{size}/{form}" for size in ("165M", "298M") for form in ("dense", "mod", "a4k8", "a3k16", "moe64", "moe128")]

failures = []


def expect(what, got, want):
    if got != want:
        failures.append(f"{what}: {got}, expected {want}")


def places(printed):
    return len(printed.split(".")[1])


def check_lines(text):
    rows = {}
    for line in text.splitlines():
        row = json.loads(line)
        expect("keys", list(row), KEYS)
        if row["preset"] in rows:
            failures.append(f"{row['preset']} appears twice")
        rows[row["preset"]] = row
    missing = (set(X_MOD) | set(MODA) | set(NARROW)) - set(rows)
    expect("missing presets", missing, set())
    if failures:
        return

    for name, (layers, params, flops) in X_MOD.items():
        row = rows[name]
        expect(f"{name} layers", row["ffn_layers"], layers)
        if isinstance(params, int):
            expect(f"{name} parameters", row["paper_params"], params)
        else:
            number = params[:-1]
            expect(f"{name} parameters", f"{row['paper_params'] / 1e9:.{places(number)}f}", number)
        if flops:
            mantissa, power = flops.split("e")
            expect(f"{name} FLOPs", f"{row['paper_flops_per_token'] / 10 ** int(power):.1f}", mantissa)
    for name, ratio in RATIOS.items():
        dense = rows[name.split("/")[0] + "/dense"]
        expect(f"{name} phi", f"{rows[name]['paper_flops_per_token'] / dense['paper_flops_per_token']:.2f}", ratio)
    for name, millions in MODA.items():
        expect(f"{name} parameters", f"{rows[name]['total_params'] / 1e6:.{places(millions)}f}", millions)

    # Equal active depth keeps as many keys and values, whatever the sparsity.
    for name, row in rows.items():
        size = name.split("/")[0]
        if size in ("165M", "298M", "556M", "936M", "1.65B") and "selected_q" not in name:
            expect(f"{name} keys and values", row["kv_bytes_per_token"], rows[size + "/dense"]["kv_bytes_per_token"])
        if not row["paper_params"] <= row["total_params"] or not row["active_params"] <= row["total_params"]:
            failures.append(f"{name}: matrices or active parameters exceed the total")
        if len(row["digest"]) != 16 or int(row["digest"], 16) < 0:
            failures.append(f"{name}: digest {row['digest']}")
    expect("distinct digests", len({row["digest"] for row in rows.values()}), len(rows))


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def check_refusal(program, *arguments):
    result = run(program, *arguments)
    expect(f"exit code for {arguments}", result.returncode, 2)
    expect(f"output for {arguments}", result.stdout, "")
    expect(f"lines of error for {arguments}", len(result.stderr.splitlines()), 1)
    if arguments[0] not in result.stderr:
        failures.append(f"the error for {arguments} does not name the argument: {result.stderr}")


def check_full_device(program, *arguments):
    """What cannot be written is an error, not a short table that looks complete."""
    with open("/dev/full", "wb") as full:
        result = subprocess.run([program, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    expect(f"exit code on a full device for {arguments}", result.returncode, 1)
    expect(f"lines of error on a full device for {arguments}", len(result.stderr.splitlines()), 1)


def main():
    compiler, source, *includes = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "count_params")
        subprocess.run([compiler, "-std=c++20", *(f"-I{d}" for d in includes), source, "-o", program], check=True)

        lines = run(program, "--json")
        expect("exit code", lines.returncode, 0)
        check_lines(lines.stdout)

        table = run(program)
        expect("exit code", table.returncode, 0)
        expect("rows of the table", len(table.stdout.splitlines()), len(lines.stdout.splitlines()) + 2)
        report = run(program, "936M/a4k8")
        expect("exit code", report.returncode, 0)
        for part in ("sparse<8> of attention, swiglu", "5-28, 30-61, 63-94, 96-127, 129-160", "4,522,626,048",
                     "4,572,839,936", "21,609,054,208"):
            if part not in report.stdout:
                failures.append(f"the report of 936M/a4k8 lacks {part}")

        for arguments in ((), ("--json",), ("936M/a4k8",)):
            check_full_device(program, *arguments)
        check_refusal(program, "--jsn")
        check_refusal(program, "936M")
        check_refusal(program, "--json", "936M/a4k8")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
