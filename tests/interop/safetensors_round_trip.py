#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""safetensors_round_trip.py COPY_SAFETENSORS: files go from the Python package through the library's reader and writer
and back into the package unchanged. Ends with status 77 (skipped) without the packages: pip install safetensors numpy."""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
    import safetensors
    import safetensors.numpy
except ImportError as missing:
    print(f"skipped: {missing} (pip install safetensors numpy)")
    sys.exit(77)

TYPES = ["float64", "float32", "int64", "int32", "int8", "uint64", "uint32", "uint16", "uint8"]


def split(data: bytes) -> tuple:
    """The header as a dictionary, and the data."""
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + length]), data[8 + length:]


def with_bfloat16(data: bytes) -> bytes:
    """NumPy has no bfloat16: declares every U16 tensor of the file as one."""
    header, body = split(data)
    for entry in header.values():
        if entry.get("dtype") == "U16":
            entry["dtype"] = "BF16"
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def content(data: bytes) -> tuple:
    """What the Python package reads: {name: (dtype, shape, bytes)}; and the metadata."""
    tensors = {name: (t["dtype"], list(t["shape"]), bytes(t["data"])) for name, t in safetensors.deserialize(data)}
    return tensors, split(data)[0].get("__metadata__", {})


def main() -> int:
    copy = sys.argv[1]
    rng = random.Random(2026)
    seen = set()
    with tempfile.TemporaryDirectory() as folder:
        given, copied = pathlib.Path(folder, "given.safetensors"), pathlib.Path(folder, "copied.safetensors")
        for case in range(20):
            tensors = {}
            for i in range(rng.randrange(0, 30)):
                shape = [rng.choice([0, 1, 1, 2, 3, 7, 16]) for _ in range(rng.randrange(0, 4))]
                dtype = numpy.dtype(rng.choice(TYPES))
                data = rng.randbytes(dtype.itemsize * int(numpy.prod(shape)))
                name = f"model.layers.{i}.{rng.choice(['weight', 'größe', 'a b', chr(0x1F600), 'q' * 300])}"
                tensors[name] = numpy.frombuffer(data, dtype=dtype).reshape(shape)
            metadata = {"digest": 'ab"\\c', "text": "line\nline \u20ac"} if case % 2 else None
            data = safetensors.numpy.save(tensors, metadata)
            given.write_bytes(with_bfloat16(data) if case % 4 > 1 else data)
            subprocess.run([copy, given, copied], check=True)
            want, got = content(given.read_bytes()), content(copied.read_bytes())
            assert got == want and len(got[0]) == len(tensors), f"case {case} differs"
            seen |= {dtype for dtype, _, _ in got[0].values()}
    assert len(seen) == 10, seen
    print(f"20 files with {', '.join(sorted(seen))}: equal after Python -> sdepth -> Python")
    return 0


if __name__ == "__main__":
    sys.exit(main())
