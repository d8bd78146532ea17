#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes build/interop, a Python environment with the packages that tests/interop compares files with.
# Configure again afterwards (cmake --preset host --fresh): the tests take the environment up where it exists.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x build/interop/bin/python3 ] || python3 -m venv build/interop
build/interop/bin/python3 -m pip install --quiet --disable-pip-version-check safetensors numpy tiktoken
