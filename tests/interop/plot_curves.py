#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plot_curves.py PLOT: tools/plot.py draws the logs that the library writes. Ends with status 77 (skipped) without
matplotlib (Debian: python3-matplotlib)."""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

if importlib.util.find_spec("matplotlib") is None:
    print("skipped: matplotlib is missing (apt-get install python3-matplotlib)")
    sys.exit(77)

LOG = """{"formula": "dense * 4"}
{"step": 0, "loss": 5.5, "route_loss": 0.7, "loads": [1,2,3], "good": true}
{"step": 1, "loss": "nan", "route_loss": 0.6, "loads": [1,2,3], "good": true}
{"step": 1, "valid_loss": 5.25}
{"step": 2, "loss": 4.5, "route_loss": 0.5, "loads": [1,2,3], "good": false}
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        one, two, out = (pathlib.Path(folder, name) for name in ("one.jsonl", "two.jsonl", "curves.png"))
        one.write_text(LOG)
        two.write_text(LOG + '{"step": 3, "lo')  # a run that goes on

        def plot(*arguments) -> subprocess.CompletedProcess:
            return subprocess.run([sys.executable, sys.argv[1], *arguments], text=True, capture_output=True)

        drawn = plot(one, two, "-o", out)
        assert drawn.returncode == 0 and "3 panels, 14 points" in drawn.stdout, drawn
        assert out.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and out.stat().st_size > 10_000
        drawn = plot(one, "-y", "loads", "-o", out)
        assert drawn.returncode == 0 and "1 panels, 9 points" in drawn.stdout, drawn
        wrong = plot(one, "-y", "los", "-o", out)
        assert wrong.returncode == 1 and "no log has the key 'los'; there are: formula, step, loss" in wrong.stderr, wrong
        two.write_text("step,loss\n1,2\n")
        wrong = plot(two, "-o", out)
        assert wrong.returncode == 1 and "two.jsonl: line 1:" in wrong.stderr, wrong
        two.write_bytes(b"\xff\xfe\x00")
        for unreadable in (two, pathlib.Path(folder, "absent.jsonl")):
            wrong = plot(unreadable, "-o", out)
            assert wrong.returncode == 1 and len(wrong.stderr.splitlines()) == 1, wrong
    print("curves of one and of two logs were drawn")
    return 0


if __name__ == "__main__":
    sys.exit(main())
