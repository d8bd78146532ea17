#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/layers.md lists what the layer headers offer, with the defaults that they have: check_layers.py ROOT.

Of include/sdepth/layers/*.hpp, choices.hpp and dims.hpp: each policy, `Dims` and `Run` has a table headed by its name, one row a
member, in order, with the member's default; each enumerator stands in the page with its enumeration's name; so do each layer
type, each word of the pattern language and each policy at hand. A row or an enumerator that the headers lack is a fault too.
"""
import pathlib
import re
import sys

AGGREGATE = re.compile(r"^struct (\w+_policy|Dims|Run) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r"^    (?:bool|double|long long|\w+) (\w+) = ([^;]+);", re.MULTILINE)
ENUM = re.compile(r"^enum class (\w+) \{(.*?)\};", re.MULTILINE | re.DOTALL)
TYPE = re.compile(r"^struct (\w+)(?: : [\w:]+)? \{\n(?:(?!^\};).)*?static constexpr std::string_view name = ", re.MULTILINE | re.DOTALL)
WORD = re.compile(r"^inline constexpr (?!bool|double|int|long)[^;=]*?\b(\w+)(?:\{| =)", re.MULTILINE | re.DOTALL)


def without_private(text):
    """The header without comments and without namespace detail."""
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"^namespace detail \{.*?^\}", "", text, flags=re.MULTILINE | re.DOTALL)


def tables(page):
    """Tables headed by a name in backticks: name -> [(member, default)]."""
    result = {}
    for head, body in re.findall(r"^\| `(\w+)` \| default \|[^\n]*\n\|[-|]+\|\n((?:\|[^\n]*\n)+)", page, re.MULTILINE):
        result[head] = re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", body, re.MULTILINE)
        if len(result[head]) != body.count("\n"):
            result[head].append(("a row without `member` and `default`", ""))
    return result


def faults(headers, page):
    """What disagrees, as sentences; `headers` are their texts."""
    text = "\n".join(map(without_private, headers))
    aggregates = {name: MEMBER.findall(body) for name, body in AGGREGATE.findall(text)}
    enums = {name: re.findall(r"\b(\w+)\b(?=\s*(?:,|$))", body) for name, body in ENUM.findall(text)}
    words = TYPE.findall(text) + WORD.findall(text)
    if not (aggregates and enums and words):
        return ["the headers have no policies, no enumerations or no layers"]
    found = tables(page)
    result = [f"no table of `{name}`" for name in aggregates if name not in found]
    result += [f"a table of `{name}`, which no header has" for name in found if name not in aggregates]
    for name, members in aggregates.items():
        if name in found and found[name] != members:
            wrong = [m for m in members if m not in found[name]] + [f for f in found[name] if f not in members]
            result.append(f"the table of `{name}` differs from the header: {wrong or 'the order of its rows'}")
    result += [f"`{name}::{value}` is missing" for name, values in enums.items() for value in values
               if not re.search(rf"\b{name}::{value}\b", page)]
    result += [f"`{name}::{value}` is no enumerator" for name, value in sorted(set(re.findall(r"\b(\w+)::(\w+)\b", page)))
               if name in enums and value not in enums[name]]
    result += [f"`{word}` is missing" for word in words if not re.search(rf"`[^`\n]*\b{word}\b[^`\n]*`", page)]
    return result


def main():
    root = pathlib.Path(sys.argv[1])
    include = root / "include/sdepth"
    headers = sorted((include / "layers").glob("*.hpp")) + [h for h in (include / "choices.hpp", include / "dims.hpp") if h.exists()]
    wrong = faults([h.read_text(encoding="utf-8") for h in headers], (root / "docs/layers.md").read_text(encoding="utf-8"))
    print("\n".join(f"docs/layers.md: {w}" for w in wrong) or f"docs/layers.md agrees with {len(headers)} headers")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
