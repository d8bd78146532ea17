#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From a fresh Debian machine to a trained model, no GPU: train.sh [FLAG for train...]. Everything lands in build/train.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
python=python3
if [ -x /usr/bin/python3 ]; then python=/usr/bin/python3; fi  # the one that Debian's matplotlib belongs to

scripts/packages.sh train
scripts/fetch_corpus.sh data/austen

out=build/train
echo "== compiling examples/train.cpp"
cmake -S . -B "$out" -G Ninja -DSDEPTH_TESTS=OFF -DSDEPTH_CUDA=OFF >/dev/null
cmake --build "$out" --target sdepth_train sdepth_generate sdepth_byte_baseline >/dev/null

echo "== training"
"$out"/examples/train --data data/austen/train --held-out data/austen/valid \
    --checkpoint "$out/model.safetensors" --overwrite --log "$out/log.jsonl" "$@"
echo "== an order-2 byte model on the same texts, for comparison"
"$out"/tools/byte_baseline data/austen/train data/austen/valid
"$python" tools/plot.py "$out/log.jsonl" -o "$out/curve.png" -y loss -y route_loss
echo "== text by the model"
"$out"/examples/generate "$out/model.safetensors" --prompt "Anne " --length 600 | tee "$out/text.txt"
python3 tools/known_words.py data/austen <"$out/text.txt"
echo "== done in $((SECONDS - started)) s: $out/model.safetensors, log.jsonl, curve.png"
