#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the curves of one or more runs: plot.py LOG... [-o curves.png] [-y KEY]... [-x KEY].

LOG is a JSON-lines log of a run. Each KEY gets a panel with one line per log (a list of numbers: one per entry); without
-y every key with "loss" in its name does. Needs matplotlib (Debian: python3-matplotlib)."""
import argparse
import json
import math
import pathlib
import sys


def read(path: pathlib.Path) -> list:
    """The objects of a log; an unfinished last line, of a run that goes on, is left out."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeError) as problem:
        sys.exit(f"plot.py: {path}: cannot be read: {problem}; name a JSON-lines log")
    rows = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            row = json.loads(line)
        except ValueError as problem:
            sys.exit(f"{path}: line {number}: {problem}; name a JSON-lines log")
        if not isinstance(row, dict):
            sys.exit(f"{path}: line {number}: is no object; name a JSON-lines log")
        rows.append(row)
    return rows


def numbers(value) -> list:
    """A value of a log line as a list of numbers; empty if it is none. "nan", "inf" and "-inf" are numbers."""
    values = value if isinstance(value, list) else [value]
    out = []
    for x in values:
        if isinstance(x, bool) or not (isinstance(x, (int, float)) or x in ("nan", "inf", "-inf")):
            return []
        out.append(float(x))
    return out


def labels(paths: list) -> list:
    """The shortest names that tell the logs apart."""
    for depth in range(1, 20):
        names = ["/".join(p.with_suffix("").parts[-depth:]) for p in paths]
        if len(set(names)) == len(names):
            break
    return names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", metavar="LOG", nargs="+", type=pathlib.Path)
    parser.add_argument("-o", "--out", default="curves.png", help="the picture (png, pdf or svg)")
    parser.add_argument("-x", default="step", metavar="KEY", help="the horizontal axis (default: step)")
    parser.add_argument("-y", action="append", metavar="KEY", help="a panel; may be given several times")
    options = parser.parse_args()
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        sys.exit("plot.py: needs matplotlib: apt-get install python3-matplotlib, or pip install matplotlib")

    runs = [read(path) for path in options.logs]
    known = list(dict.fromkeys(key for rows in runs for row in rows for key in row))
    panels = options.y or [key for key in known if "loss" in key]
    for key in [options.x] + panels:
        if key not in known:
            sys.exit(f"plot.py: no log has the key {key!r}; there are: {', '.join(known)}")
    if not panels:
        sys.exit(f"plot.py: no key has \"loss\" in its name; choose with -y of: {', '.join(known)}")

    columns = math.ceil(math.sqrt(len(panels)))
    figure, axes = pyplot.subplots(math.ceil(len(panels) / columns), columns, squeeze=False,
                                   figsize=(6.4 * columns, 4.2 * math.ceil(len(panels) / columns)))
    for axis in axes.flat[len(panels):]:
        axis.set_visible(False)
    drawn = 0
    for axis, key in zip(axes.flat, panels):
        for i, (label, rows) in enumerate(zip(labels(options.logs), runs)):
            points = [(x[0], y) for x, y in ((numbers(r.get(options.x)), numbers(r.get(key))) for r in rows) if x and y]
            for entry in range(max((len(y) for _, y in points), default=0)):
                line = [(x, y[entry]) for x, y in points if entry < len(y)]
                axis.plot([x for x, _ in line], [y for _, y in line], color=f"C{i}", linewidth=1,
                          marker="." if len(line) < 30 else None, label=label if entry == 0 else None)
                drawn += len(line)
        axis.set_xlabel(options.x)
        axis.set_title(key)
        axis.grid(True, alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(options.out, dpi=120)
    print(f"{options.out}: {len(panels)} panels, {drawn} points")
    return 0


if __name__ == "__main__":
    sys.exit(main())
