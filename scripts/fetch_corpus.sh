#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Jane Austen's six novels as text: fetch_corpus.sh [FOLDER], by default data/austen. Needs apt and python3; no root.
# They come from the Debian package r-cran-janeaustenr (MIT; the texts are in the public domain), which is unpacked, not
# installed. FOLDER/train gets five novels, FOLDER/valid the sixth, Persuasion; one file a novel. A folder that is there
# already is left as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-data/austen}
if [ -d "$out" ]; then
    echo "$out: is there"
    exit 0
fi
mkdir -p "$(dirname "$out")"
work=$(mktemp -d "$out.tmp-$(printf "X%.0s" 1 2 3 4 5 6)")
trap 'rm -rf "$work"' EXIT

# A clean machine has no package lists yet.
download() { (cd "$work" && apt-get -q download r-cran-janeaustenr); }
if ! download >"$work/log" 2>&1; then
    if [ "$(id -u)" -eq 0 ]; then
        { apt-get -q update && download; } >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    else
        cat "$work/log" >&2
        echo "fetch_corpus.sh: run apt-get update as root, then this again" >&2
        exit 1
    fi
fi
dpkg-deb -x "$work"/*.deb "$work/package"

python3 - "$work" <<'PYTHON'
import pathlib, struct, sys, zlib

work = pathlib.Path(sys.argv[1])
data = (work / "package/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb").read_bytes()
while data:  # records: 4 bytes big-endian size, then a zlib stream of an R vector of strings, one a line of the book
    (size,) = struct.unpack_from(">I", data)
    stream = zlib.decompressobj()
    record = stream.decompress(data[4:])
    data = stream.unused_data
    assert len(record) == size and record[:2] == b"X\n", "not the expected R data"
    at = 14 + 4 + struct.unpack_from(">I", record, 14)[0]  # after the versions and the name of the encoding
    kind, count = struct.unpack_from(">II", record, at)
    assert kind & 255 == 16, "not a vector of strings"
    at += 8
    lines = []
    for _ in range(count):
        (length,) = struct.unpack_from(">I", record, at + 4)
        lines.append(record[at + 8:at + 8 + length].decode("utf-8"))
        at += 8 + length
    title = next(line for line in lines if line).strip().lower().replace(" ", "_")
    folder = work / "austen" / ("valid" if title == "persuasion" else "train")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{title}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
novels = sorted(p.relative_to(work / "austen").as_posix() for p in work.glob("austen/*/*.txt"))
assert len(novels) == 6 and "valid/persuasion.txt" in novels, novels
PYTHON
mv "$work/austen" "$out"
wc -c "$out"/*/*.txt
