#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fuzzes every reader of foreign files, all at once: run.sh [SECONDS, by default 60]. Needs clang with libFuzzer
# (Debian: clang, libclang-rt-14-dev) and PCRE2. Inputs that were found stay in build/fuzz and are the start of the next
# run; a crash leaves its input there too and ends with status 1.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
build=build/fuzz
mkdir -p "$build"
flags=(-std=c++20 -O1 -g -Iinclude -Itools -fno-omit-frame-pointer -fno-sanitize-recover=all)

# seed TARGET NAME FORMAT: an input to start from.
seed() {
    mkdir -p "$build/corpus/$1"
    # shellcheck disable=SC2059
    printf "$3" >"$build/corpus/$1/$2"
}
seed safetensors empty '{}'
seed safetensors two '{"__metadata__":{"a":"b"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}\000123456789'
seed safetensors raw '\002\0\0\0\0\0\0\0{}'
seed token_file two '{"tokenizer":"t","vocabulary":300,"document_token":1,"count":3,"dtype":"uint16","sha256":""}\0\001\001\0\002\0\001\0'
seed token_file four '{"tokenizer":"t","vocabulary":70000,"count":1,"dtype":"uint32","sha256":""}\0\002\001\0\0\0'
seed tokenizer ranks 'rAA== 0\nAQ== 1\n'
seed tokenizer word 'wabaabbabab'
seed tokenizer text "tIt's  \303\251 11!\n"

# fuzz TARGET: builds it and runs it.
fuzz() {
    local target=$1 libraries=() dictionary=(-dict=tests/fuzz/json.dict)
    if [ "$target" = tokenizer ]; then libraries=(-lpcre2-8) dictionary=(); fi
    clang++ "${flags[@]}" -fsanitize=fuzzer,address,undefined "tests/fuzz/$target.cpp" -o "$build/$target" \
        "${libraries[@]}" || return
    "$build/$target" "$build/corpus/$target" "${dictionary[@]}" -max_total_time="$seconds" -timeout=10 -max_len=4096 \
        -print_final_stats=1 -artifact_prefix="$build/crash-$target-"
}

targets=(safetensors token_file tokenizer)
running=()
for target in "${targets[@]}"; do
    fuzz "$target" >"$build/$target.log" 2>&1 &
    running+=($!)
done
failed=0
for i in "${!targets[@]}"; do
    target=${targets[i]}
    echo "== $target: $seconds s"
    if wait "${running[i]}"; then
        grep -E 'number_of_executed_units|DONE' "$build/$target.log"
    else
        tail -n 60 "$build/$target.log"
        echo "== $target: FAILED; the input is $(ls -t "$build"/crash-"$target"-* 2>/dev/null | head -n 1)"
        failed=1
    fi
done
exit $failed
