#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the compile-time half costs the compiler: run.py [--check] [--runs 15] [--report FILE]

Three gates:
  include   sdepth.hpp and the counts of one model, g++ -O0: at most 1.5 s of processor time
  depth     two formulas of equal structure and equal digit counts but other depth: equal numbers of template
            instantiations (clang's time trace, granularity 0)
  time      the same pairs: medians of interleaved runs within 1.10 x, with every compiler

`--check` does the first two with few runs (a test); without it all three are measured, and `--report` writes the page.
"""
import argparse
import collections
import json
import pathlib
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE_GATE = 1.5
RATIO_GATE = 1.10

PROGRAM = """\
#include "sdepth/sdepth.hpp"
using namespace sdepth;
using namespace sdepth::literals;
constexpr auto formula = {formula};
using M = Model<formula, Dims{{.width = 1024, .head_dim = 128, .heads = 16, .kv_heads = 8, .ffn = 3072, .vocab = 50257}}>;
static_assert(M::layers == {layers});
static_assert(params<M>.total > params<M>.paper && params<M>.active != params<M>.total);
static_assert(flops<M, Run{{.seq = 32768}}>.paper.per_token() != 0);
"""
MODEL = ("dense * 4_c + (sparse<8> * 24_c + dense) + (sparse<8> * 32_c + dense) * 4_c", 161)
EXACT = """\
static_assert(params<M>.paper == 2'635'237'376 && params<M>.total == 2'635'765'144);
static_assert(flops<M, Run{.seq = 32768}>.paper.per_token() == 3'934'257'152);
"""
PAIRS = [
    (("dense * 4_c + (sparse<16> * 48_c + dense) * 6_c", 298), ("dense * 4_c + (sparse<16> * 16_c + dense) * 6_c", 106)),
    (("dense * 4_c + (sparse<16> * 16_c + dense) * 24_c", 412), ("dense * 4_c + (sparse<16> * 12_c + dense) * 24_c", 316)),
]


class Bench:
    def __init__(self, folder, includes):
        self.folder = pathlib.Path(folder)
        self.includes = [f"-I{ROOT / 'include'}"] + [f"-isystem{d}" for d in includes]

    def source(self, formula, layers, more=""):
        path = self.folder / f"layers_{layers}.cpp"
        path.write_text(PROGRAM.format(formula=formula, layers=layers) + more)
        return path

    def command(self, compiler, source, *more):
        nvcc = pathlib.Path(compiler).name == "nvcc"
        target = ["-x", "cu", "-gencode", "arch=compute_90a,code=sm_90a"] if nvcc else ["-O0"]
        return [compiler, "-std=c++20", *target, *self.includes, *more, "-c", str(source), "-o", str(source.with_suffix(".o"))]

    @staticmethod
    def seconds(command):
        """Processor seconds of one compilation: less disturbed by other work on the machine than the wall clock."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def instantiations(self, clang, source):
        subprocess.run(self.command(clang, source, "-ftime-trace", "-ftime-trace-granularity=0"), check=True,
                       stdin=subprocess.DEVNULL)
        events = json.loads(source.with_suffix(".json").read_text())["traceEvents"]
        kinds = collections.Counter(e["name"] for e in events if e["name"] in ("InstantiateClass", "InstantiateFunction"))
        if not kinds:
            raise SystemExit("the time trace has no instantiation")
        return kinds["InstantiateClass"], kinds["InstantiateFunction"]

    def interleaved(self, compiler, sources, runs):
        """Median seconds of each source; one run of each in turn, so that drift of the machine hits all alike."""
        times = [[] for _ in sources]
        for _ in range(runs):
            for i, source in enumerate(sources):
                times[i].append(self.seconds(self.command(compiler, source)))
        return [statistics.median(t) for t in times]


def version(compiler):
    text = subprocess.run([compiler, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = text.strip().splitlines()
    if "nvcc" in pathlib.Path(compiler).name:
        return "nvcc " + re.search(r"release ([\d.]+)", text)[1]
    return lines[0].strip()


def processor():
    try:
        return re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text())[1]
    except (OSError, TypeError):
        return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only the gates that do not need many runs")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--isystem", action="append", default=[], help="where Boost is, if not in a system folder")
    options = parser.parse_args()

    found = {name: shutil.which(name) for name in ("g++", "clang++", "nvcc")}
    if not found["g++"] or not found["clang++"]:
        print("skipped: needs g++ and clang++")
        return 4
    faults = []
    report = []

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, options.isystem)
        model = bench.source(*MODEL, EXACT)
        runs = 3 if options.check else options.runs
        empty = pathlib.Path(folder) / "empty.cpp"
        empty.write_text("")
        rows = []
        for name in ("g++",) if options.check else ("g++", "clang++", "nvcc"):
            if not found[name]:
                continue
            bare, full = bench.interleaved(found[name], [empty, model], runs)
            rows.append(f"| {version(found[name])} | {bare:.2f} | {full:.2f} |")
            print(f"include: {name}: empty unit {bare:.2f} s, sdepth.hpp and counts {full:.2f} s")
            if name == "g++" and full > INCLUDE_GATE:
                faults.append(f"sdepth.hpp and counts take {full:.2f} s, gate {INCLUDE_GATE} s")
        report += ["## Including sdepth.hpp and asserting the counts of one model", "",
                   f"`{MODEL[0]}`, host compilers at -O0. Gate: g++ at most {INCLUDE_GATE} s.", "",
                   "| compiler | empty unit, s | sdepth.hpp and counts, s |", "|---|---|---|", *rows, ""]

        report += ["## Depth costs nothing", "",
                   "Partners have the same structure and the same number of digits, but other depths.", "",
                   "| formula | layers | classes | functions |", "|---|---|---|---|"]
        for pair in PAIRS:
            counts = [bench.instantiations(found["clang++"], bench.source(*program)) for program in pair]
            for (formula, layers), (classes, functions) in zip(pair, counts):
                report.append(f"| `{formula}` | {layers} | {classes} | {functions} |")
                print(f"depth: {layers} layers: {classes} classes, {functions} functions instantiated")
            if counts[0] != counts[1]:
                faults.append(f"instantiations differ: {pair[0][1]} layers {counts[0]}, {pair[1][1]} layers {counts[1]}")
        report += ["", "Classes and functions: template instantiations in clang's time trace, granularity 0. Gate: equal in a pair.", ""]

        if not options.check:
            report += ["| compiler | layers | median, s | layers | median, s | ratio |", "|---|---|---|---|---|---|"]
            for name in ("g++", "clang++", "nvcc"):
                if not found[name]:
                    print(f"time: {name}: not found, not measured")
                    continue
                for pair in PAIRS:
                    a, b = bench.interleaved(found[name], [bench.source(*program) for program in pair], runs)
                    ratio = max(a, b) / min(a, b)
                    report.append(f"| {version(found[name])} | {pair[0][1]} | {a:.3f} | {pair[1][1]} | {b:.3f} | {a / b:.3f} |")
                    print(f"time: {name}: {pair[0][1]} layers {a:.3f} s, {pair[1][1]} layers {b:.3f} s")
                    if ratio > RATIO_GATE:
                        faults.append(f"{name}: {pair[0][1]} and {pair[1][1]} layers differ by {ratio:.3f} x, gate {RATIO_GATE}")
            report += ["", f"Medians of {runs} interleaved runs. Gate: within {RATIO_GATE} x.", ""]

    if options.report:
        head = ["# Compile times", "", "Written by `bench/compile_time/run.py --report`. Processor seconds (user and system) of one",
                f"translation unit, on {processor()}.", ""]
        options.report.write_text("\n".join(head + report).rstrip() + "\n")
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
