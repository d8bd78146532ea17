#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpt2_tokens.py TOKENIZE RANKS: the token files of tools/tokenize equal tiktoken's encoding, token for token, over prose,
source code and mixed Unicode. Ends with status 77 (skipped) without the package (pip install tiktoken) or the ranks
(scripts/fetch_gpt2_ranks.sh)."""
import array
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

try:
    import tiktoken
    import tiktoken.load
except ImportError:
    print("skipped: the Python package tiktoken is missing (pip install tiktoken)")
    sys.exit(77)

PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def texts(rng: random.Random) -> list:
    # Characters of Unicode 3.2: both regular-expression engines know these, whatever their version.
    old = [chr(c) for c in range(0x110000) if unicodedata.ucd_3_2_0.category(chr(c)) not in ("Cn", "Cs")]
    spaces = [c for c in old if c.isspace()] + ["\u180e", "\u200b", "\x1c", "\x1f", "\ufeff"]
    common = list("etaoin shrdlu'sdmtlvre0123456789.,!?-\n\t\r  ") + ["'ll", "'ve", "'RE", "<|endoftext|>", "\r\n"]
    out = ["x", " ", "\n", "\0", "'", "a" * 100_000, " " * 100_000 + "x", "ab" * 50_000, "1" * 5_000, "\u4e2d" * 5_000]
    for pool in (old, spaces, common, old + 2000 * spaces, common * 500 + spaces * 50 + old):
        for length in (1, 2, 3, 10, 100, 20_000):
            out.append("".join(rng.choices(pool, k=length)))
    root = pathlib.Path(__file__).resolve().parents[2]
    for path in sorted(root.glob("docs/*.md")) + sorted(root.glob("include/sdepth/*.hpp")):
        out.append(path.read_text(encoding="utf-8"))
    out += [p.read_text(encoding="utf-8") for p in sorted(root.glob("data/austen/*/*.txt"))]
    return out


def main() -> int:
    tokenize, ranks = sys.argv[1], pathlib.Path(sys.argv[2])
    if not ranks.exists():
        print(f"skipped: {ranks} is missing (scripts/fetch_gpt2_ranks.sh)")
        return 77
    reference = tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=tiktoken.load.load_tiktoken_bpe(str(ranks)),
                                  special_tokens={"<|endoftext|>": 50256})
    documents = texts(random.Random(2026))
    with tempfile.TemporaryDirectory() as folder:
        text, out = pathlib.Path(folder, "text"), pathlib.Path(folder, "out.bin")
        text.mkdir()
        want = array.array("H")
        for i, document in enumerate(documents):
            (text / f"{i:04}.txt").write_bytes(document.encode("utf-8"))
            want.append(50256)
            want.extend(reference.encode_ordinary(document))
        subprocess.run([tokenize, "--ranks", ranks, "--out", out, text], check=True)
        data = out.read_bytes()
        header, got = array.array("i", data[:1024]), array.array("H", data[1024:])
        assert list(header) == [20240520, 1, len(got)] + 253 * [0], header[:4]
        different = [i for i, (a, b) in enumerate(zip(got, want)) if a != b]
        assert got == want, f"{len(got)} tokens instead of {len(want)}, first difference at {different[:1]}"
        sidecar = json.loads(pathlib.Path(f"{out}.json").read_text())
        assert (sidecar["tokenizer"], sidecar["count"], sidecar["document_token"]) == ("gpt2", len(got), 50256), sidecar

        pathlib.Path(f"{out}.json").unlink()
        subprocess.run([tokenize, "--describe", "gpt2", out], check=True)
        assert json.loads(pathlib.Path(f"{out}.json").read_text()) == sidecar
        (text / "0000.txt").write_bytes(b"good until \xff")
        wrong = subprocess.run([tokenize, "--ranks", ranks, "--out", out, text], stderr=subprocess.PIPE, text=True)
        assert wrong.returncode == 1 and "is not UTF-8 at byte 11" in wrong.stderr, wrong
    print(f"{len(documents)} documents, {len(want)} tokens: equal to tiktoken's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
