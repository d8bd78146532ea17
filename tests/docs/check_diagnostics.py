#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every rule has a reporter, a rejected program and a section in docs/diagnostics.md, and nothing else has; every slip in
spelling has a rejected program and its text in that page: ROOT."""
import pathlib
import re
import sys


def faults(verdict, explain, document, cases):
    """What disagrees, as sentences; `cases` are the names of the rejected programs."""
    body = re.search(r"enum class rule \{(.*?)\};", verdict, re.DOTALL)
    rules = [r for r in re.findall(r"^\s*(\w+),", body[1], re.MULTILINE) if r != "none"] if body else []
    if not rules:
        return ["verdict.hpp has no rules"]
    section = document.partition("## Rules of a formula")[2].partition("\n## ")[0]
    found = re.findall(r"^### (\w+)$", section, re.MULTILINE)
    result = [f"docs/diagnostics.md has no section {r}" for r in rules if r not in found]
    result += [f"docs/diagnostics.md has a section {r}, which is no rule" for r in found if r not in rules]
    if not result and found != rules:
        result.append("the sections of docs/diagnostics.md stand in another order than the rules")
    for text in re.split(r"^### ", section, flags=re.MULTILINE)[1:]:
        name = text.split("\n", 1)[0]
        result += [f"section {name} has no line `- {part}:`" for part in ("numbers", "example", "mend")
                   if not re.search(rf"^- {part}: \S", text, re.MULTILINE)]
    result += [f"explain.hpp has no reporter {r}" for r in rules if f"constexpr bool {r}()" not in explain]
    result += [f"tests/reject has no case {r}" for r in rules if r not in cases]
    return result


def slip_faults(slips, document, cases):
    """The same of slips.hpp: reporters and their texts."""
    names = re.findall(r"constexpr void (\w+)\(\) \{", slips.partition("namespace explain {")[2].partition("}  // namespace explain")[0])
    if not names:
        return ["slips.hpp has no reporters"]
    table = document.partition("## Slips in spelling")[2]
    result = [f"tests/reject has no case {n}" for n in names if n not in cases]
    result += [f"docs/diagnostics.md lacks the text of a slip: {t}" for t in re.findall(r'"(sdepth: [^"]+)"', slips)
               if f"`{t}`" not in table]
    return result


def main():
    root = pathlib.Path(sys.argv[1])
    include = root / "include/sdepth"
    verdict, explain, slips = ((include / f).read_text(encoding="utf-8") for f in ("verdict.hpp", "explain.hpp", "slips.hpp"))
    document = (root / "docs/diagnostics.md").read_text(encoding="utf-8")
    cases = {c.stem for c in (root / "tests/reject").glob("*.cpp")}
    wrong = faults(verdict, explain, document, cases) + slip_faults(slips, document, cases)
    print("\n".join(wrong) or "rules, reporters, cases and sections agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
