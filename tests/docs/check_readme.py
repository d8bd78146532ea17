#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""README.md does what it says: check_readme.py ROOT CXX [INCLUDE_DIR]...

The first program, saved as the command line below it names it, compiles, runs and prints what the text promises. The host column
of the table of layers is right: a layer `runs` if it has passes, else it `counts`.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PRELUDE = """#include "sdepth/passes/layer.hpp"
#include "sdepth/sdepth.hpp"
using namespace sdepth;
"""


def first_program(readme):
    """(source, its file name, the command, what it prints)."""
    source = re.search(r"```cpp\n(.*?)```\n", readme, re.DOTALL)
    text = readme[source.end():]
    command = re.search(r"^    (g\+\+ .*)$", text, re.MULTILINE)[1]
    before = text[:text.index(command)]
    return source[1], re.search(r"Saved as `(\S+)`", before)[1], command, re.search(r"prints `([^`]+)`", before)[1]


def layers(readme):
    """(expression, `runs` or `counts` on the host) of each layer in the table."""
    table = readme.partition("| word | layer | host | GPU |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*`) \| [^|]+ \| (runs|counts) \| [^|]*\|$", table, re.MULTILINE)
    if len(rows) != table.count("\n") or not rows:
        raise SystemExit("README.md: the table of layers is not as check_readme.py reads it")
    return [(word, state) for words, state in rows for word in re.findall(r"`([^`]+)`", words)]


def unit(rows):
    """A translation unit that compiles if the states are right."""
    return PRELUDE + "".join(
        f'static_assert({"" if state == "runs" else "!"}runnable<std::remove_cvref_t<decltype({word})>>, "README.md: {word}");\n'
        for word, state in rows)


def main():
    root, compiler, *includes = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], *sys.argv[3:]
    readme = (root / "README.md").read_text(encoding="utf-8")
    source, name, command, printed = first_program(readme)
    environment = dict(os.environ, CPLUS_INCLUDE_PATH=":".join(includes))
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "include").symlink_to(root / "include")
        (here / name).write_text(source, encoding="utf-8")
        out = subprocess.run(["bash", "-c", command], cwd=here, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        if out != printed + "\n":
            raise SystemExit(f"README.md: `{command}` prints {out!r}, not {printed!r}")
        (here / "layers.cpp").write_text(unit(layers(readme)), encoding="utf-8")
        subprocess.run([compiler, "-std=c++20", "-Iinclude", "-fsyntax-only", "layers.cpp"], cwd=here, env=environment, check=True)
    print(f"README.md: `{command}` prints `{printed}`; {len(layers(readme))} layers are as the table says")


if __name__ == "__main__":
    main()
