#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What extract.py takes out of a document, and what it refuses."""
import pathlib
import tempfile
import unittest

import extract


class Extract(unittest.TestCase):
    def units(self, *documents):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for i, text in enumerate(documents):
                paths.append(pathlib.Path(folder) / f"{i}.md")
                paths[-1].write_text(text)
            return extract.units(paths)

    def test_a_unit_gets_the_prelude_and_its_line(self):
        kind, text = self.units("Text.\n\n<!-- test: first -->\n\n```cpp\nint x;\n```\n")["first"]
        self.assertEqual(kind, "unit")
        self.assertTrue(text.startswith(extract.PRELUDE))
        self.assertRegex(text, r'#line 6 ".*0\.md"\nint x;\n')

    def test_own_includes_stay_alone(self):
        self.assertNotIn("using namespace", self.units("<!-- test: a run -->\n```cpp\n#include <vector>\n```\n")["a"][1])

    def test_body_is_wrapped(self):
        self.assertIn("void a() {", self.units("<!-- test: a body -->\n```cpp\nf();\n```\n")["a"][1])

    def test_blocks_of_one_name_are_joined(self):
        text = self.units("<!-- test: a -->\n```cpp\nint x;\n```\nthen\n<!-- test: a -->\n```cpp\nint y = x;\n```\n")["a"][1]
        self.assertLess(text.index("int x;"), text.index("int y"))

    def test_none_is_left_out(self):
        self.assertEqual(self.units("<!-- test: none needs the user's file -->\n```cpp\n?\n```\n"), {})

    def test_refused(self):
        for text, why in (("```cpp\nint x;\n```\n", "without a"),
                          ("<!-- test: a -->\nwords between\n```cpp\nint x;\n```\n", "without a"),
                          ("<!-- test: a -->\n```cpp\nint x;\n", "not closed"),
                          ("<!-- test: A -->\n```cpp\n```\n", "a name is of"),
                          ("<!-- test: a later -->\n```cpp\n```\n", "a kind one of")):
            with self.assertRaises(SystemExit) as refused:
                self.units(text)
            self.assertIn(why, str(refused.exception))
        with self.assertRaises(SystemExit):
            self.units("<!-- test: a -->\n```cpp\n```\n", "<!-- test: a -->\n```cpp\n```\n")


if __name__ == "__main__":
    unittest.main()
