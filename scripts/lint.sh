#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Format, clang-tidy on a fixed list, and the text rules of the house. Prints every offence, then fails.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0

# clang-tidy reads one unit that includes every header that needs no CUDA; the list is fixed in scripts/tidy_list.txt. It takes
# longest and runs beside the rest.
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
tidy_log=$(mktemp)
trap 'rm -f "$tidy_log"' EXIT
mapfile -t files < <(grep -v '^#' scripts/tidy_list.txt)
(set -e; cmake --preset tidy; printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 1 "$tidy" -p build/tidy --quiet) >"$tidy_log" 2>&1 &
tidying=$!

sources=$(git ls-files '*.hpp' '*.cuh' '*.cpp' '*.cu')

# Version 14 only: other versions lay some lines out differently.
format=$(command -v clang-format-14 || command -v clang-format)
if ! "$format" --version | grep -q 'version 14\.'; then
    echo "lint: clang-format 14 is needed, found $("$format" --version)"
    bad=1
else
    # Not --dry-run: version 14 reports a change there for `namespace a::inline b`, though it makes none.
    for f in $sources; do
        "$format" "$f" | diff -u --label "$f" --label formatted "$f" - || bad=1
    done
fi

# forbid PATTERN WHY [PATHSPEC...]: no tracked text file may contain PATTERN.
forbid() {
    local pattern=$1 why=$2
    shift 2
    if git grep -nIE "$pattern" -- "$@" ':!scripts/lint.sh' ':!tests/headers/*.py'; then
        echo "lint: $why"
        bad=1
    fi
}
forbid 'TODO|FIXME|XXX' 'finish it or leave it out' .
forbid '^#if 0' 'dead code goes' .
forbid '__CUDACC__|__NVCC__|__CUDA_ARCH__' 'only config.hpp may test for CUDA' include ':!include/sdepth/config.hpp'
forbid '^[[:blank:]]*[A-Za-z_][][A-Za-z_.>()-]* = \{\.' 'nvcc 13.0 forgets members names in an assignment: name the type' include
forbid '(^|[^A-Za-z_.])P\.[a-z]' 'clang 14 reads members of a template argument wrongly, or dies: read `policy`' include/sdepth/layers include/sdepth/passes
forbid '(^|[^A-Za-z.])/(work|root|home)/' 'no paths of one machine' .
forbid '(^|[^A-Za-z0-9-])[BDMX]-[0-9]{2}([^0-9]|$)' 'name a paper and its equation, not a number of our lists' .
forbid '[[:blank:]]+$' 'trailing blanks' . ':!*.md'

missing=$(for f in $sources $(git ls-files '*.py' '*.sh' '*.cmake' '*CMakeLists.txt'); do
    head -n 3 "$f" | grep -q 'SPDX-License-Identifier: MIT' || echo "$f"
done)
if [ -n "$missing" ]; then
    printf '%s\n' "$missing"
    echo "lint: first lines need '// SPDX-License-Identifier: MIT'"
    bad=1
fi

if ! wait "$tidying"; then
    cat "$tidy_log"
    echo "lint: clang-tidy"
    bad=1
fi
exit $bad
