#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the GPU tests, runs them on this machine's GPU and again under each tool of compute-sanitizer:
#   gpu_tests.sh         BUILD names a folder with the programs already built (default: configured and built in build/gpu)
# Under the sanitizers only test cases tagged [small] run: a fixed list of small shapes, the tools of one program side by
# side, for they keep one core each and little of the GPU. Ends with `N passed, N failed`; nothing run is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."

if ! nvidia-smi >/dev/null 2>&1; then
    echo "skipped: no GPU here"
    exit 4
fi
if [[ -z ${BUILD:-} ]]; then
    BUILD=build/gpu
    cmake -S . -B "$BUILD" -DCMAKE_BUILD_TYPE=Release -DSDEPTH_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=90a-real &&
        cmake --build "$BUILD" -j "$(nproc)" || exit 1
fi

passed=0 failed=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
check() {  # check NAME COMMAND...
    echo "== $1"
    if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "== $1: FAILED"; fi
}
finished() {  # finished PROCESS LOG: its output, and whether it succeeded
    local status=0
    wait "$1" || status=1
    cat "$2"
    return $status
}
for program in "$BUILD"/tests/cuda/sdepth_test_cuda_*; do
    [[ -x $program && ! -d $program ]] || continue
    name=$(basename "$program")
    check "$name" timeout 600 "$program"
    declare -A started=()
    for tool in memcheck racecheck initcheck synccheck; do
        options=(--tool "$tool" --error-exitcode 1)
        # Of each block of threads; its own guess is too small for the depth kernels, which then fail under it.
        [[ $tool == synccheck ]] && options+=(--num-cuda-barriers 64)
        timeout 600 compute-sanitizer "${options[@]}" "$program" "[small]" >"$logs/$tool" 2>&1 &
        started[$tool]=$!
    done
    for tool in memcheck racecheck initcheck synccheck; do
        check "$name under $tool" finished "${started[$tool]}" "$logs/$tool"
    done
done
echo "$passed passed, $failed failed"
[[ $failed == 0 && $passed != 0 ]]
