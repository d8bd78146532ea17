#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each fault that check_ranks.py must find, planted in a small tree."""
import pathlib
import tempfile
import unittest

import check_ranks

GOOD = {
    "sdepth/config.hpp": "// Macros. Rank 0.\n#pragma once\n#if defined(__CUDACC__)\n#endif\n",
    "sdepth/a.hpp": '// A. Rank 1.\n#include "sdepth/config.hpp"\n#include <vector>\n',
    "sdepth/b.hpp": '// B, in two\n// lines. Rank 1.\n#include "sdepth/a.hpp"\n',
    "sdepth/c.hpp": '// C. Rank 2.\n#include "sdepth/b.hpp"\n',
    "sdepth/k.cuh": '// K. Rank 2.\n#include "sdepth/c.hpp"\n',
}


class Ranks(unittest.TestCase):
    def problems(self, changes, order=None):
        files = {**GOOD, **changes}
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_ranks.check(root, [root / n for n in (order or GOOD)])

    def expect(self, text, changes, order=None):
        problems = self.problems(changes, order)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, problems[0])

    def test_a_good_tree_passes(self):
        self.assertEqual(self.problems({}), [])

    def test_missing_rank(self):
        self.expect("must state one rank", {"sdepth/b.hpp": '// B.\n#include "sdepth/a.hpp"\n'})

    def test_rank_after_the_top_comment_does_not_count(self):
        self.expect("must state one rank", {"sdepth/b.hpp": "// B.\n#pragma once\n// Rank 1.\n"})

    def test_higher_rank_included(self):
        self.expect("sdepth/b.hpp (rank 1) includes sdepth/c.hpp (rank 2)",
                    {"sdepth/b.hpp": '// B. Rank 1.\n#include "sdepth/c.hpp"\n'})

    def test_same_rank_listed_below(self):
        self.expect("not listed above it", {"sdepth/a.hpp": '// A. Rank 1.\n#include "sdepth/b.hpp"\n',
                                            "sdepth/b.hpp": "// B. Rank 1.\n"})

    def test_list_out_of_order(self):
        order = ["sdepth/config.hpp", "sdepth/c.hpp", "sdepth/a.hpp", "sdepth/b.hpp", "sdepth/k.cuh"]
        self.expect("is listed below", {}, order)

    def test_unlisted_header(self):
        self.expect("sdepth/new.hpp: not listed", {"sdepth/new.hpp": "// N. Rank 1.\n"})

    def test_macro_outside_config(self):
        self.expect("tests __CUDACC__", {"sdepth/b.hpp": "// B. Rank 1.\n#if defined(__CUDACC__)\n#endif\n"})
        self.expect("defines TWO; only config.hpp may", {"sdepth/b.hpp": "// B. Rank 1.\n#pragma once\n #  define TWO 2\n"})

    def test_late_include(self):
        self.expect("behind its first declaration",
                    {"sdepth/b.hpp": '// B. Rank 1.\n#pragma once\n\nnamespace b {}\n\n// Why.\n#include "sdepth/a.hpp"\n'})
        self.assertEqual(self.problems({"sdepth/b.hpp": '// B. Rank 1.\n#if 1\n\n// Why.\n#include <new>\n#endif\nint b;\n'}), [])

    def test_host_header_includes_cuda(self):
        self.expect("must compile without CUDA", {"sdepth/c.hpp": '// C. Rank 2.\n#include "sdepth/k.cuh"\n',
                                               "sdepth/k.cuh": "// K. Rank 1.\n"})

    def test_own_header_in_angle_brackets(self):
        self.expect('write "sdepth/a.hpp"', {"sdepth/b.hpp": "// B. Rank 1.\n#include <sdepth/a.hpp>\n"})

    def test_relative_include(self):
        self.expect('includes "a.hpp"', {"sdepth/b.hpp": '// B. Rank 1.\n#include "a.hpp"\n'})


if __name__ == "__main__":
    unittest.main()
