#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What check_layers.py accepts and what it finds."""
import unittest

from check_layers import faults

HEADER = """namespace detail {
struct hidden_policy {
    bool unseen = true;
};
}
enum class form {
    round,  ///< a, b
    flat
};
struct own_policy {
    form shape = form::round;  ///< what; and why
    double size = 1e-2;

    friend constexpr bool operator==(const own_policy&, const own_policy&) = default;
};
template <own_policy P = own_policy{}>
struct Own {
    static constexpr std::string_view name = "own";
};
inline constexpr Own<> own{};
"""
ROWS = "| `shape` | `form::round` | what; `form::flat` |\n| `size` | `1e-2` | of it |\n"
PAGE = "`Own<own_policy>`; in `own`.\n\n| `own_policy` | default | what |\n|---|---|---|\n" + ROWS


class CheckLayers(unittest.TestCase):
    def test_all_agree(self):
        self.assertEqual(faults([HEADER], PAGE), [])

    def expect(self, fault, header=HEADER, page=PAGE):
        self.assertIn(fault, " ".join(faults([header], page)))

    def test_members(self):
        self.expect("no table of `own_policy`", page=PAGE.replace("| `own_policy` |", "| own |"))
        self.expect("[('more', '0')]", header=HEADER.replace("    double", "    int more = 0;\n    double"))
        self.expect("('size', '1e-3')", page=PAGE.replace("1e-2", "1e-3"))
        self.expect("order of its rows", page=PAGE.replace(ROWS, "\n".join(reversed(ROWS.splitlines())) + "\n"))
        self.expect("('less', '0')", page=PAGE + "| `less` | `0` | gone |\n")
        self.expect("a row without", page=PAGE + "| less | 0 | gone |\n")
        self.expect("which no header has", page=PAGE + "\n| `other` | default | what |\n|---|---|---|\n| `a` | `1` | b |\n")

    def test_names(self):
        self.expect("`form::flat` is missing", page=PAGE.replace("; `form::flat`", ""))
        self.expect("`form::thin` is no enumerator", page=PAGE + "`form::thin`\n")
        self.expect("`Own` is missing", page=PAGE.replace("`Own<", "`Other<"))
        self.expect("`own` is missing", page=PAGE.replace("in `own`", "elsewhere"))
        self.expect("no policies", header="")


if __name__ == "__main__":
    unittest.main()
