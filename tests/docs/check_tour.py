#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/tour.md leads through the whole house: check_tour.py ROOT.

Each header of include/sdepth/headers.cmake stands in the page in backticks, or its folder does; each header that stands there exists.
"""
import pathlib
import re
import sys


def faults(listed, page):
    """What disagrees, as sentences; `listed` is the text of headers.cmake."""
    headers = re.findall(r"^\s+([\w/]+\.(?:hpp|cuh))\s*$", listed, re.MULTILINE)
    if not headers:
        return ["headers.cmake lists no headers"]
    named = set(re.findall(r"`([\w/]+(?:/|\.hpp|\.cuh))`", page))
    result = [f"docs/tour.md lacks {h}" for h in headers if h not in named and h.partition("/")[0] + "/" not in named]
    return result + [f"docs/tour.md names {n}, which is no header" for n in sorted(named)
                     if n not in headers and not any(h.startswith(n) for h in headers)]


def main():
    root = pathlib.Path(sys.argv[1])
    found = faults((root / "include/sdepth/headers.cmake").read_text(encoding="utf-8"),
                   (root / "docs/tour.md").read_text(encoding="utf-8"))
    print("\n".join(found) or "tour and headers agree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
