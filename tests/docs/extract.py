#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cuts marked programs out of Markdown: extract.py OUT_DIR FILE.md... ; prints `name|kind` lines.

A fenced ```cpp block is compiled if the line before it (blank lines aside) is a marker:

    <!-- test: NAME -->          a unit; sdepth.hpp and the namespaces are added if the block includes nothing itself
    <!-- test: NAME body -->     statements; the same, inside a function
    <!-- test: NAME run -->      a program with main(); also linked and run
    <!-- test: none REASON -->   not compiled, and says why

A ```cpp block without a marker is an error, so that no program in the documentation goes untested by accident. Blocks of
one file that share a NAME are one unit, in order. `#line` makes errors point into the document.
"""
import pathlib
import re
import sys

MARKER = re.compile(r"^<!--\s*test:\s*(\S+)(?:\s+(.+?))?\s*-->\s*$")
PRELUDE = '#include "sdepth/sdepth.hpp"\nusing namespace sdepth;\nusing namespace sdepth::literals;\n'
KINDS = ("unit", "body", "run")


def blocks(path):
    """(marker or None, first line's number, text) of each ```cpp block."""
    lines = path.read_text(encoding="utf-8").splitlines()
    marker, i = None, 0
    while i < len(lines):
        found = MARKER.match(lines[i].strip())
        if found:
            marker = found
        elif re.match(r"\s*```\s*(cpp|c\+\+|cuda)\b", lines[i]):
            indent = len(lines[i]) - len(lines[i].lstrip())
            start = i + 1
            i = start
            while i < len(lines) and lines[i].strip() != "```":
                i += 1
            if i == len(lines):
                raise SystemExit(f"{path}:{start}: the block is not closed")
            yield marker, start + 1, "\n".join(t[indent:] for t in lines[start:i]) + "\n"
            marker = None
        elif lines[i].strip():
            marker = None
        i += 1


def units(paths):
    """name -> (kind, source)."""
    result = {}
    for path in paths:
        own = set()
        for marker, line, text in blocks(path):
            if marker is None:
                raise SystemExit(f"{path}:{line}: a cpp block without a `<!-- test: NAME -->` marker")
            name, kind = marker[1], marker[2] or "unit"
            if name == "none":
                continue
            if not re.fullmatch(r"[a-z0-9_]+", name) or kind not in KINDS:
                raise SystemExit(f"{path}:{line}: marker `{name} {kind}`; a name is of a-z, 0-9 and _, a kind one of {KINDS}")
            if name in result and name not in own:
                raise SystemExit(f"{path}:{line}: the name {name} is taken by another file")
            text = f'#line {line} "{path}"\n{text}'
            if name in result:
                if result[name][0] != kind:
                    raise SystemExit(f"{path}:{line}: {name} has two kinds")
                result[name] = (kind, result[name][1] + text)
            else:
                result[name] = (kind, text)
            own.add(name)
    sources = {}
    for name, (kind, text) in result.items():
        if kind == "body":
            text = f"void {name}();\nvoid {name}() {{\n{text}}}\n"
        sources[name] = (kind, text if "#include" in text else PRELUDE + text)
    return sources


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, (kind, text) in units([pathlib.Path(a) for a in sys.argv[2:]]).items():
        target = out / f"{name}.cpp"
        if not target.exists() or target.read_text(encoding="utf-8") != text:  # an unchanged unit is not rebuilt
            target.write_text(text, encoding="utf-8")
        print(f"{name}|{kind}")


if __name__ == "__main__":
    main()
