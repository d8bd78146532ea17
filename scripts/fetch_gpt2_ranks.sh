#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# GPT-2's byte-pair ranks for tools/tokenize: fetch_gpt2_ranks.sh [FILE], by default data/gpt2.tiktoken. Needs pip.
# The file is taken out of the Python package mlx-whisper (MIT), which is not installed; its hash is checked.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-data/gpt2.tiktoken}
want=306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930
right() { [ -f "$1" ] && [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$want" ]; }
if right "$out"; then
    echo "$out: is there"
    exit 0
fi
if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "fetch_gpt2_ranks.sh: needs pip: apt-get install python3-pip" >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$work" mlx-whisper==0.4.3
python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read("mlx_whisper/assets/gpt2.tiktoken"))' \
    "$work"/*.whl >"$work/ranks"
if ! right "$work/ranks"; then
    echo "fetch_gpt2_ranks.sh: the package's gpt2.tiktoken has another hash than expected; not used" >&2
    exit 1
fi
mkdir -p "$(dirname "$out")"
mv "$work/ranks" "$out"
echo "$out: 50256 ranks"
