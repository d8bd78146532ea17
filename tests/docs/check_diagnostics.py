#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The rules of verdict.hpp, in four places that must agree: check_diagnostics.py ROOT.

Each rule has one reporter in explain.hpp, to which `report` leads, with as many numbers as its section of
docs/diagnostics.md lists; that section, in the order of the rules; and a rejected program of its name in tests/reject
that expects its numbers. Reporters and sections of anything else are faults; further rejected programs are not. Every slip of slips.hpp has a rejected program, and its text in that page.
"""
import pathlib
import re
import sys


def reporters_of(explain):
    """The reporters by name, each with the number of its template parameters."""
    text = explain.partition("namespace detail")[0]
    return {name: parameters.count(",") + 1 for parameters, name in
            re.findall(r"^template <([^<>]*)>\nconstexpr bool (\w+)\(\) \{", text, re.MULTILINE)}


def faults(verdict, explain, document, cases):
    """What disagrees, as sentences; `cases` are the rejected programs, text by name."""
    body = re.search(r"enum class rule \{(.*?)\};", verdict, re.DOTALL)
    rules = [r for r in re.findall(r"^\s*(\w+),", body[1], re.MULTILINE) if r != "none"] if body else []
    if not rules:
        return ["verdict.hpp has no rules"]
    section = document.partition("## Rules")[2].partition("\n## ")[0]
    found = re.findall(r"^### (\w+)$", section, re.MULTILINE)
    result = [f"docs/diagnostics.md has no section {r}" for r in rules if r not in found]
    result += [f"docs/diagnostics.md has a section {r}, which is no rule" for r in found if r not in rules]
    if not result and found != rules:
        result.append("the sections of docs/diagnostics.md stand in another order than the rules")
    reporters = reporters_of(explain)
    result += [f"explain.hpp has no reporter {r}" for r in rules if r not in reporters]
    result += [f"explain.hpp has a reporter {r}, which is no rule" for r in reporters if r not in rules]
    result += [f"report() does not lead to {r}" for r in rules
               if not re.search(rf"broken == rule::{r}\) \{{\s*return {r}<", explain)]
    for text in re.split(r"^### ", section, flags=re.MULTILINE)[1:]:
        name = text.split("\n", 1)[0]
        result += [f"section {name} has no line `- {part}:`" for part in ("numbers", "example", "mend")
                   if not re.search(rf"^- {part}: \S", text, re.MULTILINE)]
        numbers = re.search(r"^- numbers: (.*)$", text, re.MULTILINE)
        listed = re.sub(r"\([^()]*\)", "", numbers[1]).count(",") + 1 if numbers else 0
        if name in reporters and listed != reporters[name]:
            result.append(f"section {name} lists {listed} numbers, its reporter has {reporters[name]}")
    result += [f"tests/reject has no case {r}" for r in rules if r not in cases]
    result += [f"the case {r} of tests/reject does not expect `numbers: {r} ...`" for r in rules
               if r in cases and not re.search(rf"^// numbers: {r} ", cases[r], re.MULTILINE)]
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
    cases = {c.stem: c.read_text(encoding="utf-8") for c in (root / "tests/reject").glob("*.cpp")}
    wrong = faults(verdict, explain, document, cases) + slip_faults(slips, document, cases)
    print("\n".join(wrong) or "rules, reporters, cases and sections agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
