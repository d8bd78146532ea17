#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Share of the words on standard input that occur in a corpus: known_words.py FOLDER < text"""
import pathlib
import re
import sys

WORD = re.compile(r"[A-Za-z]+")
if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
    sys.exit("usage: known_words.py FOLDER < text; FOLDER holds the corpus as text files")
known = set()
for path in pathlib.Path(sys.argv[1]).rglob("*.txt"):
    known.update(WORD.findall(path.read_text(encoding="utf-8", errors="replace").lower()))
words = WORD.findall(sys.stdin.buffer.read().decode("utf-8", errors="replace").lower())
if not words:
    sys.exit("known_words.py: no words on standard input")
share = sum(word in known for word in words) / len(words)
print(f"{share:.1%} of {len(words)} words occur in the corpus")
