#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What check_tour.py accepts and what it finds."""
import unittest

from check_tour import faults

LISTED = "set(HEADERS\n    a.hpp\n    layers/b.hpp\n    c.cuh\n)\n"


class CheckTour(unittest.TestCase):
    def test_all_agree(self):
        self.assertEqual(faults(LISTED, "`a.hpp`, `layers/` and `c.cuh`"), [])
        self.assertEqual(faults(LISTED, "`a.hpp`, `layers/b.hpp` and `c.cuh`; `headers.cmake`"), [])

    def test_missing_header(self):
        self.assertEqual(faults(LISTED, "`a.hpp`, c.cuh"),
                         ["docs/tour.md lacks layers/b.hpp", "docs/tour.md lacks c.cuh"])

    def test_unknown_header(self):
        self.assertEqual(faults(LISTED, "`a.hpp` `layers/` `c.cuh` `d.hpp` `ops/`"),
                         ["docs/tour.md names d.hpp, which is no header", "docs/tour.md names ops/, which is no header"])

    def test_no_headers(self):
        self.assertEqual(faults("", "`a.hpp`"), ["headers.cmake lists no headers"])


if __name__ == "__main__":
    unittest.main()
