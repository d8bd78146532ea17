#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds and runs the tests: test.sh [--all]. Installs Debian packages when run as root.
#   (nothing)  the tests of the host: every kind of test, by g++ alone
#   --all      also what clang++ says, each header alone, the examples, lint, sanitizers, fuzzing, file formats against their
#              Python packages, and, where nvcc is, the CUDA build
# Ends with one line, `N passed, N failed, N skipped`, and exit code 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."

all=false
case "${1:-}" in
    "") ;;
    --all) all=true ;;
    *) echo "usage: scripts/test.sh [--all]" >&2; exit 2 ;;
esac

passed=0 failed=0 skipped=0
failures=()
jobs=$(nproc)
started=$SECONDS

# step NAME COMMAND...: one check that passes or fails as a whole.
step() {
    local name=$1 began=$SECONDS
    shift
    echo "== $name"
    if "$@" </dev/null; then
        passed=$((passed + 1))
        echo "== $name: passed in $((SECONDS - began)) s"
    else
        failed=$((failed + 1))
        failures+=("$name")
        echo "== $name: FAILED after $((SECONDS - began)) s"
        return 1
    fi
}

# A check that takes little more than one core runs beside others: start COMMAND..., and later `step NAME finished`.
start() {
    started_log=$(mktemp)
    "$@" </dev/null >"$started_log" 2>&1 &
    started_process=$!
}
finished() {
    local status=0
    wait "$started_process" || status=1
    cat "$started_log"
    rm -f "$started_log"
    return $status
}

skip() {
    echo "== $1: skipped ($2)"
    skipped=$((skipped + 1))
}

# Runs ctest in one build folder and adds its counts; a run of no tests is a failure.
run_ctest() {
    local preset=$1 began=$SECONDS report=build/$1/ctest.xml counts
    shift
    echo "== $preset: tests"
    rm -f "$report"
    ctest --preset "$preset" -j "$jobs" --output-junit ctest.xml "$@" </dev/null | grep -v ' Start '
    if ! counts=$(python3 scripts/count_junit.py "$report"); then
        failed=$((failed + 1))
        failures+=("$preset: tests did not run")
        return 1
    fi
    read -r p f s <<<"$counts"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    [ "$f" -eq 0 ] || failures+=("$preset: $f tests")
    echo "== $preset: $p passed, $f failed, $s skipped in $((SECONDS - began)) s"
}

# preset NAME [CTEST_ARGUMENT...]: configure, build everything that can be built, test.
preset() {
    local name=$1
    shift
    step "$name: configure" cmake --preset "$name" || return 1
    step "$name: build" cmake --build --preset "$name" -j "$jobs" -- -k 0 || true
    run_ctest "$name" "$@"
}

finish() {
    echo
    for failure in "${failures[@]:-}"; do [ -z "$failure" ] || echo "FAILED: $failure"; done
    echo "time: $((SECONDS - started)) s"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit $?
}

sets=(test)
$all && sets+=(lint fuzz interop)
step "packages" scripts/packages.sh "${sets[@]}" || finish
if $all; then
    step "interop packages" scripts/interop_venv.sh
    preset host-tests
    start scripts/lint.sh
    preset host-asan -LE 'compile|script'  # sanitizers change nothing about what compiles
    step "lint, beside host-asan" finished
    if [ -f tests/fuzz/run.sh ]; then step "fuzz" bash tests/fuzz/run.sh; fi
    if command -v nvcc >/dev/null; then preset cuda; else skip "cuda" "no nvcc"; fi
else
    preset host-quick -LE thorough
fi
finish
