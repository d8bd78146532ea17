#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs train, generate, use_model and compare as a user does, on a tiny text: a run that is interrupted, the table of a
comparison, and inputs that would cost a file or a run if they were taken.

usage: programs.py FOLDER_OF_PROGRAMS
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

failures = []
programs = Path(sys.argv[1])


def expect(what, got, want):
    if got != want:
        failures.append(f"{what}: {got!r}, expected {want!r}")


def run(program, *arguments, **options):
    return subprocess.run([programs / program, *map(str, arguments)], text=True, capture_output=True, timeout=200, **options)


def check_refusal(words, program, *arguments, status=1, **options):
    """One line of error that has the words, and nothing else done."""
    result = run(program, *arguments, **options)
    expect(f"exit status of {program} {arguments}", result.returncode, status)
    if words not in result.stderr or (status == 1 and len(result.stderr.splitlines()) != 1):
        failures.append(f"{program} {arguments} says {result.stderr!r}, expected one line with {words!r}")


def check_inputs(folder, train):
    """What is refused before the first step, and leaves every file as it was."""
    (folder / "book.txt").write_text("It is a truth universally acknowledged\n")
    (folder / "one.txt").write_text("x")
    os.mkfifo(folder / "pipe")
    os.symlink("/dev/null", folder / "null")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file() and not path.is_symlink()}

    check_refusal("cannot create its lock", "train", *train, "--checkpoint", folder / "absent/x.safetensors")
    check_refusal("no regular file", "train", *train, "--checkpoint", folder / "pipe")
    check_refusal("no regular file", "train", *train, "--checkpoint", folder / "null")
    check_refusal("is not replaced", "train", *train, "--checkpoint", folder / "book.txt", "--overwrite")
    check_refusal("holds another run", "train", *train, "--checkpoint", folder / "run.safetensors")
    check_refusal("is no log of a run", "train", *train, "--log", folder / "book.txt")
    check_refusal("is no log of a run", "train", *train, "--log", folder / "run.safetensors")
    check_refusal("into the text", "train", *train, "--log", folder / "text.txt")
    check_refusal("into the text", "train", *train, "--checkpoint", folder / "held_out.txt", "--overwrite")
    check_refusal("as log and as checkpoint", "train", *train, "--checkpoint", folder / "new", "--log", folder / "new")
    check_refusal("none to predict", "train", "--data", folder / "text.txt", "--held-out", folder / "one.txt")
    check_refusal("lower the batch", "train", *train, "--batch", 34359738376)
    for flag, value in (("--rate", "nan"), ("--warmup", "nan"), ("--seed", "-1"), ("--save-every", "-1"),
                        ("--threads", "100000"), ("--batch", "-8")):
        check_refusal(flag, "train", *train, flag, value, status=2)
    check_refusal("--change-rate", "train", *train, "--change-rate", status=2)

    for path, content in before.items():
        expect(f"bytes of {path.name}", path.read_bytes() == content, True)
    if not (folder / "pipe").is_fifo():
        failures.append("the pipe was replaced")


def check_interrupt(folder, train):
    """Ctrl-C: the program says that it stops, keeps what it has, and resumes with the same settings alone."""
    checkpoint, log = folder / "stopped.safetensors", folder / "stopped.jsonl"
    files = ("--checkpoint", checkpoint, "--log", log)
    process = subprocess.Popen([programs / "train", *map(str, train), "--steps", "100000", *map(str, files)], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and not (log.exists() and log.stat().st_size > 0):
        time.sleep(0.02)
    check_refusal("another run is writing it", "train", *train, "--steps", "100000", "--overwrite", *files)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    expect("exit status after Ctrl-C", process.returncode, 0)
    expect("what Ctrl-C is answered", "stopping after this step" in err, True)
    expect("the end of an interrupted run", "--resume goes on" in out, True)
    expect("a checkpoint of an interrupted run", checkpoint.exists(), True)
    expect("locks that are left", list(folder.glob("*.lock")), [])
    check_refusal("learning rate", "train", *train, "--steps", "100000", *files, "--resume", "--rate", "1e-4")


def compared(*arguments):
    """The table's rows: name, phi/phi_D, D/D_D, seeds, loss, spread, difference to Dense, verdict."""
    result = run("compare", *arguments)
    expect(f"exit status of compare ({result.stderr})", result.returncode, 0)
    row = re.compile(r"^(.{20}) +\d+ +([\d.]+) +([\d.]+) +\d+ +(\d+) +([\d.]+) \(([\d.]+)\) +[\d.]+ +([-+][\d.]+) *(.*?) *$")
    rows = [match.groups() for match in map(row.match, result.stdout.splitlines()) if match]
    return [(name.strip(), *map(float, numbers), verdict) for name, *numbers, verdict in rows]


def check_comparison(texts):
    rows = compared(*texts, "--steps", 1, "--equal", "tokens")
    expect("rows of compare", len(rows), 10)
    for name, _, tokens, seeds, loss, spread, difference, verdict in rows:
        expect(f"{name}: tokens and seeds", (tokens, seeds), (1, 2))
        expect(f"{name}: difference", abs(loss - rows[0][4] - difference) < 2e-4, True)
        undecided = abs(difference) - spread - rows[0][5]
        want = "" if name == "Dense" else "undecided" if undecided <= 0 else "better" if difference < 0 else "worse"
        if abs(undecided) > 3e-4:  # printed digits decide
            expect(f"{name}: verdict", verdict, want)
    check_refusal("--equal", "compare", *texts, "--equal", "money", status=2)
    check_refusal("--held-out", "compare", "--data", texts[1], status=2)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text.txt").write_text("".join(f"sentence {i * i % 37} of a small text. " for i in range(80)))
        (folder / "held_out.txt").write_text("a sentence that was held out. " * 5)
        texts = ("--data", folder / "text.txt", "--held-out", folder / "held_out.txt", "--threads", "1")
        train = (*texts, "--steps", "1")
        model = folder / "run.safetensors"

        result = run("train", *train, "--checkpoint", model, "--log", folder / "run.jsonl")
        expect(f"exit status of train ({result.stderr})", result.returncode, 0)
        expect("lines of the log", len((folder / "run.jsonl").read_text().splitlines()), 2)
        expect("files of a run", sorted(p.name for p in folder.glob("run.*")), ["run.jsonl", "run.safetensors"])
        result = run("train", *train, "--checkpoint", model, "--resume")
        expect("a run that is done says so", "all 1 steps are done" in result.stdout, True)
        expect("differences of a run from itself", "goes on otherwise" in result.stdout, False)
        other = folder / "other.safetensors"
        other.write_bytes(model.read_bytes().replace(b"  weights: f32", b"  weights: f64"))
        result = run("train", *train, "--checkpoint", other, "--resume")
        expect("lines of differences", [line for line in result.stdout.splitlines() if "otherwise" in line],
               ["goes on otherwise: weights: f64 in the file, f32 here"])

        result = run("generate", model, "--prompt", "sent", "--length", 3)
        expect("exit status of generate", result.returncode, 0)
        expect("text of generate", result.stdout[:4], "sent")
        expect("exit status of use_model", run("use_model", model, "sentence").returncode, 0)
        with open("/dev/full", "w") as full:
            result = subprocess.run([programs / "generate", model, "--length", "2"], stdout=full, stderr=subprocess.PIPE)
            expect("exit status of generate on a full device", result.returncode, 1)
        check_refusal("--temperature", "generate", model, "--temperature", "nan", status=2)
        broken = folder / "broken.safetensors"
        content = bytearray(model.read_bytes())
        content[-1] ^= 1
        broken.write_bytes(content)
        check_refusal("is damaged", "generate", broken)

        check_comparison(texts)
        check_inputs(folder, train)
        check_interrupt(folder, texts)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
