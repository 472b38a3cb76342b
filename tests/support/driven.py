# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/drivers, driven by lines; numbers as text; tests in TAP."""
import re
import subprocess
import sys
import tempfile

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "us": 10**3, "ms": 10**6,
         "s": 10**9}


class Wrong(Exception):
    """A step that does not hold, or does not exist."""


def total(text, find):
    """4K, 3*256, 1M+1, 10ms-1, with words that find(word) knows; None if it is none."""

    def one(part):
        number = re.fullmatch(r"(0x[0-9a-f]+|\d+)([KMGT]|us|ms|s)?", part)
        return int(number[1], 0) * UNITS[number[2] or ""] if number else find(part)

    value = 0
    if not re.fullmatch(r"-?[^+-]+([+-][^+-]+)*", text):
        return None
    for sign, term in re.findall(r"([+-]?)([^+-]+)", text):
        product = 1
        for factor in map(one, term.split("*")):
            if factor is None:
                return None
            product *= factor
        value += -product if sign == "-" else product
    return value % 2**64


class Driver:
    """The program, started again after a broken promise."""

    def __init__(self, program):
        self.program, self.process, self.errors = program, None, None

    def ask(self, *words):
        """(result, its fields, lines before the answer)"""
        return self.ask_many([words])[0]

    def ask_many(self, calls):
        """The same of several calls."""
        if not self.process:
            self.errors = tempfile.TemporaryFile("w+")
            self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.process.stdin.write("".join("\t".join(map(str, words)) + "\n" for words in calls))
        self.process.stdin.flush()
        return [self.answer() for _ in calls]

    def answer(self):
        before = []
        for line in self.process.stdout:
            fields = line.rstrip("\n").split("\t")
            if fields[0] == "=":
                return int(fields[1]), fields[2:], before
            before.append(fields)
        status = self.end()
        self.errors.seek(0)
        raise Wrong(f"a promise is broken (exit status {status}): {self.errors.read().strip()}")

    def end(self):
        process, self.process = self.process, None
        if process:
            process.stdin.close()
            process.stdout.close()
        return process and process.wait()


def run_tests(tests, driver):
    """{name: function of the driver} in TAP; the exit status."""
    failed = 0
    print(f"1..{len(tests)}")
    for i, (name, test) in enumerate(tests.items(), 1):
        try:
            test(driver)
            print(f"ok {i} - {name}")
        except Exception as wrong:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {i} - {name}\n# {type(wrong).__name__}: {wrong}")
            driver.end()
    return bool(failed) or driver.end() not in (0, None)


def main(tests):
    """Runs functions test_… on the program that the command line names."""
    sys.exit(run_tests({n: f for n, f in tests.items() if n.startswith("test_")}, Driver(sys.argv[1])))
