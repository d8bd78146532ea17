#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What check_readme.py reads out of a README."""
import unittest

import check_readme

README = """```cpp
int main() {}
```

Saved as `a.cpp` it prints `1`:

    g++ a.cpp && ./a.out

| word | layer | host | GPU |
|---|---|---|---|
| `dense`, `sparse<8>(mamba)` | some | runs | if all do |
| `moda` | other | counts | |

More.
"""


class CheckReadme(unittest.TestCase):
    def test_first_program(self):
        self.assertEqual(check_readme.first_program(README), ("int main() {}\n", "a.cpp", "g++ a.cpp && ./a.out", "1"))

    def test_layers(self):
        self.assertEqual(check_readme.layers(README), [("dense", "runs"), ("sparse<8>(mamba)", "runs"), ("moda", "counts")])
        text = check_readme.unit([("dense", "runs"), ("moda", "counts")])
        self.assertIn("static_assert(runnable<std::remove_cvref_t<decltype(dense)>>", text)
        self.assertIn("static_assert(!runnable<std::remove_cvref_t<decltype(moda)>>", text)

    def test_refused(self):
        for wrong in (README.replace("| counts |", "| perhaps |"), README.replace("| host |", "| backend |")):
            with self.assertRaises(SystemExit):
                check_readme.layers(wrong)


if __name__ == "__main__":
    unittest.main()
