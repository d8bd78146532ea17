#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the kernel benches on this machine's GPU beside their peers and merges the rows into bench/results/h200.json:
#   bench.sh [PEERS]     PEERS (or the environment's PEERS): a folder with peer_attention.py and peer_train.py, run by
#                        python3 with PyTorch
# BUILD names a folder whose bench/kernels holds built programs (default: configured and built in build/bench); COMMIT
# names what they were built from, where this is no git checkout. ONLY names the families to run (default: all three,
# "attention operations step"), each with its peers.
set -euo pipefail
cd "$(dirname "$0")/.."

peers=${1:-${PEERS:-}}
if [[ -z ${BUILD:-} ]]; then
    BUILD=build/bench
    cmake -S . -B "$BUILD" -DCMAKE_BUILD_TYPE=Release -DSDEPTH_CUDA=ON -DSDEPTH_BENCH=ON -DSDEPTH_TESTS=OFF \
        -DSDEPTH_EXAMPLES=OFF -DCMAKE_CUDA_ARCHITECTURES=90a-real
    cmake --build "$BUILD" -j "$(nproc)"
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

runs() { [[ " ${ONLY:-attention operations step} " == *" $1 "* ]]; }
family() {  # family PROGRAM
    case $1 in
        *attention) echo attention ;;
        *step) echo step ;;
        *) echo operations ;;
    esac
}

ours=()
for program in "$BUILD"/bench/kernels/sdepth_bench_* "$BUILD"/bench/step/sdepth_bench_*; do
    [[ -x $program && ! -d $program ]] || continue
    name=$(basename "$program")
    runs "$(family "$name")" || continue
    "$program" | tee "$logs/$name"
    ours+=("$logs/$name")
done
if runs step; then
    "$BUILD/bench/step/sdepth_bench_step" 936M | tee "$logs/step_936M"  # the largest model that one card holds
    ours+=("$logs/step_936M")
fi
peer_logs=()
if [[ -n $peers ]]; then
    if runs attention; then
        python3 -u "$peers/peer_attention.py" | tee "$logs/peers"
        python3 -u scripts/attention_accuracy.py "$BUILD/bench/kernels/sdepth_bench_attention" | tee "$logs/accuracy"
        ours+=("$logs/accuracy")
    fi
    if runs operations; then python3 -u scripts/peer_operations.py | tee "$logs/peer_operations"; fi
    if runs step; then
        for pattern in dense mod a4k8 a3k16; do  # compiled, cuDNN attention, in a CUDA graph
            python3 -u "$peers/peer_train.py" "556M:$pattern:1:32768:1:cudnn:1" | tee -a "$logs/peer_steps"
        done
    fi
    peer_logs=(--peers "$logs"/peer*)
fi
IFS=, read -r card driver <<<"$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
python3 scripts/bench_merge.py bench/results/h200.json "$card" "${driver# }" "${COMMIT:-$(git rev-parse --short HEAD)}" \
    "${ours[@]}" "${peer_logs[@]}"
