#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The script itself, on cases that must pass and cases that must not: test_run_reject.py COMPILER [nvcc]."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

import run_reject

COMPILER, NVCC = "g++", False

LIBRARY = """
template <long long layer, long long heads, long long width>
constexpr bool heads_divide_width() {
    static_assert(width % heads == 0, "sdepth: heads must divide the width");
    return true;
}
template <class T>
void late() {
    static_assert(sizeof(T) > 8, "sdepth: too small");
}
"""
TWIN = "static_assert(heads_divide_width<6, 12, 768>());"
BAD = "static_assert(heads_divide_width<6, 10, 768>());"
EXPECT = "// expect: sdepth: heads must divide\n// numbers: heads_divide_width 6 10 768\n"


class Script(unittest.TestCase):
    def outcome(self, twin="", rejected="", expect=EXPECT, whole=None, twins=False):
        with tempfile.TemporaryDirectory() as folder:
            case = pathlib.Path(folder) / "case.cpp"
            case.write_text(whole or f"{expect}{LIBRARY}\n#ifdef TWIN\n{twin}\n#else\n{rejected}\n#endif\n")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = run_reject.main(["--compiler", COMPILER] + ["--nvcc"] * NVCC + ["--twins"] * twins + [str(case)])
            return code, out.getvalue()

    def expect_outcome(self, code, text, *arguments, **options):
        got, output = self.outcome(*arguments, **options)
        self.assertEqual(got, code, output)
        self.assertIn(text, output)

    def test_good_case(self):
        self.expect_outcome(0, "refused as expected", TWIN, BAD)

    def test_assertion_in_a_function_that_is_only_called(self):
        self.expect_outcome(0, "refused as expected", "void f() { late<char[9]>(); }", "void f() { late<char>(); }",
                            expect="// expect: sdepth: too small\n")

    def test_case_that_compiles_fails(self):
        self.expect_outcome(1, "the rejected program compiles", TWIN, TWIN)

    def test_two_errors_fail(self):
        self.expect_outcome(1, "2 errors", TWIN, BAD + "\nint x = unknown_name;")

    def test_text_of_another_fails(self):
        bad = "int x = unknown_name;"
        expect = "// expect: unknown_name\n"
        self.expect_outcome(1, "does not start with `sdepth:`", TWIN, bad, expect=expect)
        self.expect_outcome(1, "does not start with `sdepth:`", TWIN, 'static_assert(sizeof(int) > 8, "too small");',
                            expect="// expect: too small\n")
        self.expect_outcome(0, "refused as expected", TWIN, bad, expect=expect + "// own text: the compiler's\n")

    def test_warning_beside_the_error_fails(self):
        self.expect_outcome(1, "a warning beside the error", TWIN, "#warning look\n" + BAD)

    def test_wrong_text_fails(self):
        self.expect_outcome(1, "lacks /sdepth: another rule/", TWIN, BAD, expect="// expect: sdepth: another rule\n")

    def test_wrong_numbers_fail(self):
        self.expect_outcome(1, "the output lacks", TWIN, BAD, expect="// numbers: heads_divide_width 6 10 769\n")

    def test_numbers_match_whole_and_in_order(self):
        self.expect_outcome(1, "the output lacks", TWIN, BAD, expect="// numbers: heads_divide_width 10 6\n")
        self.expect_outcome(1, "the output lacks", TWIN, BAD, expect="// numbers: heads_divide_width 6 10 76\n")

    def test_numbers_stand_behind_the_rule(self):
        self.expect_outcome(1, "the output lacks", TWIN, BAD, expect="// numbers: heads 6 10 768\n")
        self.expect_outcome(1, "the output lacks", TWIN, BAD, expect="// numbers: late 6 10 768\n")
        self.expect_outcome(2, "needs a rule", TWIN, BAD, expect="// numbers: 6 10 768\n")
        self.expect_outcome(2, "needs a rule", TWIN, BAD, expect="// numbers: heads_divide_width\n")

    def test_broken_twin_fails(self):
        self.expect_outcome(1, "twins do not compile cleanly", BAD, BAD, twins=True)
        self.expect_outcome(1, "twins do not compile cleanly", "#warning look\n" + TWIN, BAD, twins=True)

    def test_good_twin(self):
        self.expect_outcome(0, "accepted as expected", TWIN, BAD, twins=True)

    def test_twins_share_a_program(self):
        with tempfile.TemporaryDirectory() as folder:
            cases = [pathlib.Path(folder) / name for name in ("one.cpp", "two.cpp")]
            for case in cases:
                case.write_text(f"{EXPECT}#include <string>\n#ifdef TWIN\nstruct X {{}};\n#else\n#endif\nstd::string x;\n")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = run_reject.main(["--compiler", COMPILER] + ["--nvcc"] * NVCC + ["--twins", *map(str, cases)])
            self.assertEqual(code, 0, out.getvalue())

    def outcome_together(self, library, *rejected):
        if not NVCC and "clang" not in COMPILER:
            self.skipTest("g++ names the program in front of an error")
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "library.hpp").write_text(f"#pragma once\n{LIBRARY}")
            cases = [pathlib.Path(folder) / f"case_{i}.cpp" for i in range(len(rejected))]
            for case, program in zip(cases, rejected):
                case.write_text(f"{EXPECT}{library}\n#ifdef TWIN\n{TWIN}\n#else\n{program}\n#endif\n")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = run_reject.main(["--compiler", COMPILER] + ["--nvcc"] * NVCC + ["--together", *map(str, cases)])
            return code, out.getvalue()

    def test_together(self):
        in_type = "template <long long w> struct S { static_assert(heads_divide_width<6, 10, w>()); };\nS<768> s;"
        for library in (LIBRARY, '#include "library.hpp"'):  # shared: what the first instantiated is broken for all
            code, output = self.outcome_together(library, BAD, in_type, BAD)
            self.assertEqual((code, output.count("refused as expected")), (0, 3), output)

    def test_each_together_has_its_own_error(self):
        for wrong, text in ((TWIN, "the rejected program compiles"), (BAD + "\nint x = unknown_name;", "2 errors"),
                            ("#warning look\n" + BAD, "a warning beside the error"),
                            ("void f() { late<char>(); }", "the output lacks")):
            code, output = self.outcome_together(LIBRARY, BAD, wrong)
            self.assertEqual((code, output.count("refused as expected")), (1, 1), output)
            self.assertIn(text, output)

    def test_case_guarded_out_is_malformed(self):
        guarded = f"#if defined(NO_SUCH_MACRO)\n{BAD}\n#endif"
        program = f"{EXPECT}{LIBRARY}\n#ifdef TWIN\n{TWIN}\n#else\n{BAD}\n#endif\n"
        for twins in (False, True):
            self.expect_outcome(2, "each once", TWIN, guarded, twins=twins)
            self.expect_outcome(2, "each once", whole=f"#ifdef NO_SUCH_MACRO\n{program}#endif\n", twins=twins)

    def test_nothing_to_reject_fails(self):
        self.expect_outcome(1, "the rejected program compiles", TWIN, "// nothing but a comment")

    def test_empty_twin_is_malformed(self):
        self.expect_outcome(2, "empty twin", "// nothing", BAD, twins=True)
        self.expect_outcome(2, "empty twin", "#define EMPTY\n;", BAD, twins=True)

    def test_nothing_expected_is_malformed(self):
        self.expect_outcome(2, "no `// expect:`", TWIN, BAD, expect="")

    def test_no_twin_is_malformed(self):
        self.expect_outcome(2, "each once", whole=f"{EXPECT}{LIBRARY}{BAD}\n")

    def test_missing_compiler_is_skipped(self):
        self.assertEqual(run_reject.main(["--compiler", "no-such-compiler", "x.cpp"]), 4)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        COMPILER, NVCC = sys.argv[1], sys.argv[2:] == ["nvcc"]
    unittest.main(argv=sys.argv[:1])
