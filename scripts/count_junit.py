#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints `passed failed skipped` of a JUnit file that ctest wrote; fails if it is missing or names no test."""
import sys
import xml.etree.ElementTree

try:
    cases = xml.etree.ElementTree.parse(sys.argv[1]).getroot().findall("testcase")
except (OSError, xml.etree.ElementTree.ParseError) as error:
    sys.exit(f"count_junit: {error}")
if not cases:
    sys.exit("count_junit: no test ran")
# ctest writes `run`, `fail`, `notrun` or `disabled`; a test whose program is missing is `notrun` too, but has no skip message.
failed = skipped = 0
for case in cases:
    if case.get("status") == "run":
        continue
    reason = case.find("skipped")
    if reason is not None and reason.get("message", "").startswith("SKIP_"):
        skipped += 1
    else:
        failed += 1
print(len(cases) - failed - skipped, failed, skipped)
