#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes build/interop, a Python environment with the packages that tests/interop compares files with, and fetches GPT-2's
# ranks. Configure afterwards: the tests take the environment up where it exists. Needs venv (Debian: python3-venv).
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x build/interop/bin/python3 ] || python3 -m venv build/interop
build/interop/bin/python3 -m pip install --quiet --disable-pip-version-check safetensors numpy tiktoken matplotlib
PATH="$PWD/build/interop/bin:$PATH" scripts/fetch_gpt2_ranks.sh
