#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what a purpose needs on Debian or Ubuntu: packages.sh [train] [test] [lint] [fuzz] [interop]. What every build needs
# is always in.
set -euo pipefail

packages=(g++ cmake ninja-build python3 libboost-dev libopenblas-dev libcli11-dev)
for set in "$@"; do
    case "$set" in
        train) packages+=(python3-matplotlib) ;;
        test) packages+=(catch2 libpcre2-dev git) ;;
        lint) packages+=(clang clang-format clang-tidy) ;;
        fuzz) packages+=(libclang-rt-14-dev) ;;
        interop) packages+=(python3-venv) ;;
        *) echo "packages.sh: unknown set '$set' (train, test, lint, fuzz, interop)" >&2; exit 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    echo "packages.sh: not a Debian system; needed are: ${packages[*]}" >&2
    exit 0  # the configure step says what is missing
fi
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ]; then
    echo "packages.sh: please run: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    exit 1
fi
