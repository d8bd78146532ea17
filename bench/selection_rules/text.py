#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The text of docs/performance/selection_rules.md: text.py FOLDER [PACKAGE.deb]

Writes FOLDER/train.txt and FOLDER/valid.txt: all .rst, then all .txt files of the Debian package linux-doc-6.1 (downloaded
by apt-get unless given), in the order of their paths, without sixteen stretches of 64 KiB, each in the middle of a
sixteenth; and these stretches.
"""
import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

STRETCHES, BYTES = 16, 1 << 16


def content(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def text_of(package, folder):
    subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    root = next(Path(folder).glob("usr/share/doc/linux-doc-*/Documentation"))
    files = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root)).removesuffix(".gz")
        if path.is_file() and name.endswith((".rst", ".txt")):
            files[name.endswith(".txt"), name] = path
    return b"".join(content(files[key]) for key in sorted(files))


def main():
    out = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        if len(sys.argv) > 2:
            package = Path(sys.argv[2])
        else:
            subprocess.run(["apt-get", "-q", "download", "linux-doc-6.1"], cwd=work, check=True)
            package = next(Path(work).glob("*.deb"))
        text = text_of(package, f"{work}/package")
    begins = [i * (len(text) // STRETCHES) + len(text) // STRETCHES // 2 for i in range(STRETCHES)]
    ends = [0] + [begin + BYTES for begin in begins]
    out.mkdir(parents=True, exist_ok=True)
    (out / "train.txt").write_bytes(b"".join(text[a:b] for a, b in zip(ends, begins + [len(text)])))
    (out / "valid.txt").write_bytes(b"".join(text[b:b + BYTES] for b in begins))
    print(f"{package.name}: {len(text)} bytes, of which {STRETCHES * BYTES} are held out")


if __name__ == "__main__":
    main()
