#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that wrong programs are refused well, each alone; with --twins, that their accepted twins compile, all in one:

    run_reject.py --compiler CXX [--nvcc] [--include DIR]... [--first HEADER] [--together | --twins] CASE.cpp...

`--first` reads HEADER before the case, from HEADER.gch if that was compiled with the same options. `--together` compiles the
wrong programs as one, which takes a tenth of the time (clang++, nvcc: g++ names the program in front of an error). Each
must get the errors that it would get alone; a program that instantiates what another broke too got its error there, and
is tried alone.

A case holds two programs, the rejected one and its accepted twin:

    // expect: <regular expression>      in the compiler's output; one or more lines
    // numbers: rule 6 10 768            the offending numbers, in this order behind the rule's name (the function that
                                         asserts) on one line of the output
    // own text                          the error's text is not the library's: the compiler's, or a user's layer's
    #ifdef TWIN
    ...                                  must compile without a warning, in a namespace of its own
    #else
    ...                                  must end with a nonzero code, exactly one error, whose text starts with
                                         `sdepth:`, no warning, and the expected text
    #endif

Exit code: 0 all well, 1 a case failed, 2 a case is malformed (nothing to compile, nothing expected), 4 no such compiler.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# `file:3:4: error:` (g++, clang++), `file(3): error #20012-D:` (nvcc), `ptxas fatal :`. Echoed source starts with a blank.
ERROR = re.compile(r"^(?:\S.*)?\b(?:fatal )?error(?: #[\w-]+)?\s*:", re.MULTILINE)
WARNING = re.compile(r"^(?:\S.*)?\bwarning(?: #[\w-]+)?\s*:", re.MULTILINE)
# Behind `error: static assertion failed: ` (g++), or quoted behind the requirement (clang++) or `with` (nvcc).
LIBRARY_TEXT = re.compile(r"\bstatic[_ ]assert(?:ion)? failed(?:: | with \"|.* \")sdepth: ")
OWN_TEXT = re.compile(r"^// own text\b", re.MULTILINE)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])(.*)[>\"].*$", re.MULTILINE)
LINE_MARKER = re.compile(r'^#(?:line)? (\d+) "([^"]*)"')


class Malformed(Exception):
    """The case tests nothing."""


class Compiler:
    def __init__(self, path, nvcc, includes, first):
        base = [path, "-std=c++20"] + (["-x", "cu", "-arch=sm_90a"] if nvcc else [])
        self._check = base + [f"-I{d}" for d in includes] + (["-include", first] if first else [])
        # One pass of nvcc's front end; -cuda would be two of the same.
        self._check += ["-ptx"] if nvcc else ["-fsyntax-only", "-Wall", "-Wextra"]
        self._check += ["-ferror-limit=0"] if "clang" in pathlib.Path(path).name else []
        self._preprocess = base + ["-E"]
        self._nvcc = nvcc

    def check(self, program):
        """Exit code and output."""
        with tempfile.TemporaryDirectory() as folder:
            out = ["-o", f"{folder}/out.ptx"] if self._nvcc else []
            run = subprocess.run(self._check + out + [str(program)], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        return run.returncode, run.stdout

    def live_lines(self, program):
        """Pairs of a case and a line of it that the preprocessor leaves in; it need not read what the case includes."""
        run = subprocess.run(self._preprocess + [str(program)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=300, check=False)
        if run.returncode != 0:
            raise Malformed(f"the twins do not preprocess:\n{run.stderr}")
        live, line, case = set(), 0, ""
        for text in run.stdout.splitlines():
            marker = LINE_MARKER.match(text)
            if marker:
                line, case = int(marker[1]), marker[2]
                continue
            if text.strip(" \t;"):
                live.add((case, line))
            line += 1
        return live


def parse(case):
    """What the output must have, and the lines of the twin."""
    lines = case.read_text(encoding="utf-8").splitlines()
    expected = [re.compile(m[1]) for m in (re.match(r"//\s*expect:\s*(.+?)\s*$", t) for t in lines) if m]
    for found in (re.match(r"//\s*numbers:\s*(.+?)\s*$", t) for t in lines):
        if found:
            name, *numbers = found[1].split()
            if not name.isidentifier() or not numbers:
                raise Malformed(f"{case.name} needs a rule and its numbers in `// numbers:`")
            numbers = (rf"(?<![\w.]){re.escape(n)}(?:LL|L|U|UL|ULL)?(?!\w)" for n in numbers)
            expected.append(re.compile(".*".join((rf"\b{name}[<(]", *numbers))))
    if not expected:
        raise Malformed(f"{case.name} has no `// expect:` line")
    where = [[i for i, t in enumerate(lines, 1) if t.split("//")[0].strip() == d] for d in ("#ifdef TWIN", "#else", "#endif")]
    if [len(w) for w in where] != [1, 1, 1] or not where[0] < where[1] < where[2]:
        raise Malformed(f"{case.name} needs `#ifdef TWIN`, `#else` and `#endif`, each once")
    start, middle, end = (w[0] for w in where)
    return expected, range(start + 1, middle)


def as_one(cases):
    """One program of all cases: what they include, then each in a namespace, under its own file name and lines."""
    texts = {case: case.read_text(encoding="utf-8") for case in cases}
    includes = {}
    for case, text in texts.items():
        for quote, name in INCLUDE.findall(text):
            beside = case.parent / name
            includes[f'"{beside}"' if quote == '"' and beside.exists() else quote + name + quote.replace("<", ">")] = None
    return "\n".join([f"#include {name}" for name in includes] +
                     [f'namespace case_{case.stem} {{\n#line 1 "{case}"\n{INCLUDE.sub("", text)}\n}}'
                      for case, text in texts.items()]) + "\n"


def run_twins(compiler, cases):
    """The faults of the accepted twins."""
    twins = {case: parse(case)[1] for case in cases}
    text = "#define TWIN\n" + as_one(cases)
    with tempfile.TemporaryDirectory() as folder:
        alone = pathlib.Path(folder) / "alone.cpp"
        alone.write_text(INCLUDE.sub("", text), encoding="utf-8")
        live = compiler.live_lines(alone)
        for case, lines in twins.items():
            if not any((str(case), line) in live for line in lines):
                raise Malformed(f"{case.name} has an empty twin")
        program = pathlib.Path(folder) / "twins.cpp"
        program.write_text(text, encoding="utf-8")
        code, output = compiler.check(program)
    if code != 0 or ERROR.search(output) or WARNING.search(output):
        return [f"the accepted twins do not compile cleanly (code {code}):\n{output}"]
    return []


def judge(case, code, output):
    """The faults of a rejected program by what the compiler says of it, none if all is well."""
    expected, _ = parse(case)
    faults = []
    errors = len(ERROR.findall(output))
    if code == 0:
        faults.append("the rejected program compiles")
    elif errors != 1:
        faults.append(f"{errors} errors, must be exactly one:\n{output}")
    else:
        error = next(line for line in output.splitlines() if ERROR.search(line))
        if not LIBRARY_TEXT.search(error) and not OWN_TEXT.search(case.read_text(encoding="utf-8")):
            faults.append(f"the error's text does not start with `sdepth:`:\n{error}")
        if WARNING.search(output):
            faults.append(f"a warning beside the error:\n{output}")
        faults += [f"the output lacks /{e.pattern}/:\n{output}" for e in expected if not e.search(output)]
    return faults


def run(compiler, case):
    """The faults of one rejected program, alone."""
    parse(case)
    return judge(case, *compiler.check(case))


def run_together(compiler, cases):
    """The faults of each rejected program, all of them compiled as one. An error, or a warning, is the program's to whose
    lines it leads back."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "together.cpp"
        program.write_text(as_one(cases), encoding="utf-8")
        code, output = compiler.check(program)
    starts = sorted(m.start() for what in (ERROR, WARNING) for m in what.finditer(output))
    said = dict.fromkeys(cases, "")
    for start, end in zip(starts, starts[1:] + [len(output)]):
        message = output[start:end]
        whose = [case for case in cases if str(case) in message]
        if len(whose) != 1:
            return {"together": [f"this leads back to {len(whose)} programs, must be to one:\n{message}"]}
        said[whose[0]] += message
    return {case: judge(case, code, text) if text else run(compiler, case) for case, text in said.items()}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--nvcc", action="store_true", help="the compiler is nvcc")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--first", default="", metavar="HEADER", help="a header to read before the case")
    parser.add_argument("--twins", action="store_true", help="the accepted twins instead, in one program")
    parser.add_argument("--together", action="store_true", help="the rejected programs in one")
    parser.add_argument("cases", nargs="+", type=pathlib.Path)
    options = parser.parse_args(arguments)
    if shutil.which(options.compiler) is None:
        print(f"skipped: no {options.compiler}")
        return 4
    compiler = Compiler(options.compiler, options.nvcc, options.include, options.first)
    cases = [case.resolve() for case in options.cases]
    try:
        if options.twins:
            faults_of = {"twins": run_twins(compiler, cases)}
        elif options.together:
            for case in cases:
                parse(case)
            faults_of = run_together(compiler, cases)
        else:
            faults_of = {case: run(compiler, case) for case in cases}
    except Malformed as why:
        print(f"MALFORMED: {why}")
        return 2
    for case, faults in faults_of.items():
        for fault in faults:
            print(f"{case}: FAILED: {fault}")
        if not faults:
            print(f"{case}: {'accepted' if options.twins else 'refused'} as expected")
    return 1 if any(faults_of.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
