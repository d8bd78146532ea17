#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What check_diagnostics.py accepts and what it finds."""
import unittest

from check_diagnostics import faults, slip_faults

VERDICT = "enum class rule {\n    none,\n    first,  ///< a\n    second,  ///< b\n};\n"
REPORTERS = """template <long long layer>
constexpr bool first() {
template <long long layer>
constexpr bool second() {
"""
EXPLAIN = REPORTERS + """namespace detail {
constexpr bool report() {
    if constexpr (broken == rule::first) {
        return first<layer>();
    } else if constexpr (broken == rule::second) {
        return second<layer>();
"""
CASES = {"first": "// numbers: first 1\n", "second": "// numbers: second 1\n"}
LINES = "\n\nWhat.\n\n- numbers: layer\n- example: x\n- mend: y\n\n"
DOCUMENT = f"## Rules of a formula\n\n### first{LINES}### second{LINES}## Others\n"


class CheckDiagnostics(unittest.TestCase):
    def test_all_agree(self):
        self.assertEqual(faults(VERDICT, EXPLAIN, DOCUMENT, CASES | {"more": ""}), [])

    def expect(self, fault, verdict=VERDICT, explain=EXPLAIN, document=DOCUMENT, cases=CASES):
        self.assertIn(fault, " ".join(faults(verdict, explain, document, cases)))

    def test_sections(self):
        self.expect("no section third", verdict=VERDICT.replace("};", "    third,  ///< c\n};"))
        self.expect("which is no rule", document=DOCUMENT.replace("## Others", f"### other{LINES}## Others"))
        self.expect("another order", document=f"## Rules of a formula\n\n### second{LINES}### first{LINES}")
        self.expect("section second has no line `- mend:`",
                    document=DOCUMENT[:DOCUMENT.rindex("- mend")] + "\n## Others\n")
        self.expect("section second lists 2 numbers, its reporter has 1",
                    document="numbers: layer, more".join(DOCUMENT.rsplit("numbers: layer", 1)))
        self.expect("no rules", verdict="")

    def test_reporters(self):
        self.expect("no reporter second", explain=EXPLAIN.replace("bool second", "void second"))
        self.expect("a reporter third, which is no rule",
                    explain=EXPLAIN.replace("namespace", "template <int a>\nconstexpr bool third() {\nnamespace"))
        self.expect("report() does not lead to second", explain=EXPLAIN.replace("rule::second", "rule::other"))
        self.expect("report() does not lead to second", explain=EXPLAIN.replace("return second", "return first"))

    def test_cases(self):
        self.expect("no case second", cases={"first": CASES["first"]})
        self.expect("does not expect `numbers: second ...`", cases=CASES | {"second": "// numbers: first 1\n"})

    def test_slips(self):
        slips = ('namespace explain {\nconstexpr void slip() {\n    static_assert(false, "sdepth: write x");\n}\n'
                 '}  // namespace explain\nconstexpr void other() {\n')
        document = "## Slips in spelling\n\n| `y` | `sdepth: write x` |\n"
        self.assertEqual(slip_faults(slips, document, {"slip"}), [])
        self.assertIn("no case slip", " ".join(slip_faults(slips, document, {"other"})))
        self.assertIn("lacks the text", " ".join(slip_faults(slips, document.replace("x", "z"), {"slip"})))
        self.assertIn("no reporters", " ".join(slip_faults("", document, set())))


if __name__ == "__main__":
    unittest.main()
