#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the order of the headers: check_ranks.py INCLUDE_DIR HEADER...

The headers come in the order of include/sdepth/headers.cmake. Each states its rank in its top comment (`Rank 3.`). A
header may include only headers of a lower rank, or of its own rank that are listed above it; every header on disk must
be listed; config.hpp alone defines macros or tests `__CUDACC__`. Includes come first.
"""
import pathlib
import re
import sys

RANK = re.compile(r"\bRank (\d+)\.")
DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
# A declaration with an include behind it.
LATE_INCLUDE = re.compile(r'^(?!\s*#|\s*//|\s*$).*\n(?:.*\n)*?\s*#\s*include\b', re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def top_comment(text: str) -> str:
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.lstrip("/ "))
    return " ".join(lines)


def check(root: pathlib.Path, headers: list) -> list:
    problems = []
    names = [pathlib.Path(h).resolve().relative_to(root.resolve()).as_posix() for h in headers]
    position = {name: i for i, name in enumerate(names)}
    rank, text = {}, {}
    for name in names:
        text[name] = (root / name).read_text(encoding="utf-8")
        found = RANK.findall(top_comment(text[name]))
        if len(found) != 1:
            problems.append(f"{name}: its top comment must state one rank, such as `Rank 3.`; found {len(found)}")
        else:
            rank[name] = int(found[0])
    for path in sorted(p for p in root.rglob("*") if p.suffix in (".hpp", ".cuh", ".h")):
        name = path.relative_to(root).as_posix()
        if name not in position:
            problems.append(f"{name}: not listed in include/sdepth/headers.cmake")
    for name in names:
        if name != "sdepth/config.hpp":
            if "__CUDACC__" in text[name]:
                problems.append(f"{name}: tests __CUDACC__; only config.hpp may")
            problems += [f"{name}: defines {macro}; only config.hpp may" for macro in DEFINE.findall(text[name])]
        if LATE_INCLUDE.search(text[name]):
            problems.append(f"{name}: includes something behind its first declaration")
        for style, target in INCLUDE.findall(text[name]):
            if not target.startswith("sdepth/"):
                if style == '"':
                    problems.append(f'{name}: includes "{target}"; write own headers as "sdepth/..." and others as <...>')
                continue
            if style == "<":
                problems.append(f'{name}: includes <{target}>; write "{target}"')
            if target not in position:
                problems.append(f"{name}: includes {target}, which is no listed header")
            elif name.endswith(".hpp") and target.endswith(".cuh"):
                problems.append(f"{name}: includes {target}; a .hpp must compile without CUDA")
            elif name in rank and target in rank:
                if rank[target] > rank[name]:
                    problems.append(f"{name} (rank {rank[name]}) includes {target} (rank {rank[target]})")
                elif rank[target] == rank[name] and position[target] >= position[name]:
                    problems.append(f"{name} includes {target} of the same rank {rank[name]}, which is not listed above it")
    for extension in (".hpp", ".cuh"):
        ordered = [n for n in names if n.endswith(extension) and n in rank]
        for above, below in zip(ordered, ordered[1:]):
            if rank[below] < rank[above]:
                problems.append(f"{below} (rank {rank[below]}) is listed below {above} (rank {rank[above]})")
    return problems


def main() -> int:
    problems = check(pathlib.Path(sys.argv[1]), sys.argv[2:])
    for problem in problems:
        print(f"sdepth: {problem}")
    print(f"{len(sys.argv) - 2} headers, {len(problems)} problems")
    return 1 if problems or len(sys.argv) < 3 else 0


if __name__ == "__main__":
    sys.exit(main())
