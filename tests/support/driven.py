# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/drivers, driven by lines; numbers as text; tests in TAP."""
import functools
import os
import random
import re
import subprocess
import sys
import tempfile

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "us": 10**3, "ms": 10**6,
         "s": 10**9}


class Wrong(Exception):
    """A step that does not hold, or does not exist."""


def total(text, find):
    """4K, 3*256, 1M+1, 10ms-1, with words that find(word) knows; None if it is no number."""

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


class Skipped(Exception):
    """What lacks its environment."""


class Driver:
    """The program (or its command), started again after a broken promise; folder: where it runs."""

    folder = None

    def __init__(self, program):
        self.program, self.process, self.errors = program, None, None

    def ask(self, *words):
        """(result, its fields, lines before the answer)"""
        return self.ask_many([words])[0]

    def ask_many(self, calls):
        """The same of several calls."""
        if not self.process:
            self.errors = tempfile.TemporaryFile("w+")
            self.process = subprocess.Popen(self.program, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=self.errors,
                                            encoding="latin-1", cwd=self.folder)
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


def cases(path, run):
    """{name: test} of a file of cases (tests/support/cases.h): run(driver, lines) gives the lines
    of a body anew."""
    with open(path, encoding="latin-1") as file:
        head, *parts = re.split(r"(?m)^== ", file.read())
    done = []

    def one(name, body, driver):
        done.append((name, list(run(driver, body))))
        if not os.environ.get("CASES_REWRITE"):
            for want, got in zip([*body, ""], [*done[-1][1], ""]):
                if want != got:
                    raise Wrong(f"expected: {want}\n# got:      {got}")
        elif len(done) == len(parts):
            with open(path, "w", encoding="latin-1") as file:
                file.write(head + "\n\n".join("\n".join([f"== {n}", *lines]) for n,
                                              lines in done) + "\n")

    bodies = [part.rstrip("\n").split("\n") for part in parts]
    return {f"test_{os.path.basename(path)}: {name}": functools.partial(one, name, body) for name,
            *body in bodies}


def in_lines(answer):
    """Bodies of lines "call -> answer": answer(driver, call, expected)."""

    def run(driver, body):
        for line in body:
            call, _, expected = line.partition(" -> ")
            said = answer(driver, call, expected) if line and line[0] != "#" else ""
            yield call + (" -> " + said if said else "")

    return run


def in_parts(answer):
    """Bodies of an input, and its answer in the last lines, which begin with ">": answer(driver,
    input)."""

    def run(driver, body):
        end = len(body)
        while end and body[end - 1].startswith(">"):
            end -= 1
        said = answer(driver, "\n".join(body[:end]) + "\n").rstrip("\n")
        return body[:end] + [("> " + line).rstrip(" ") if not line else "> " + line
                             for line in said.split("\n") if said]

    return run


def unescape(text):
    """The bytes of a text with C's escapes."""
    plain = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}
    return re.sub(r"\\(?:x(..)|(.))", lambda m: chr(int(m[1], 16)) if m[1]
                  else plain.get(m[2], m[2]), text,
                  flags=re.S).encode("latin-1")


def run_tests(tests, driver):
    """{name: function of the driver} in TAP; the exit status."""
    failed = 0
    print(f"1..{len(tests)}")
    for i, (name, test) in enumerate(tests.items(), 1):
        try:
            test(driver)
            print(f"ok {i} - {name}")
        except Skipped as why:
            print(f"ok {i} - {name} # SKIP {why}")
        except Exception as wrong:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {i} - {name}\n# {type(wrong).__name__}: {wrong}")
    return bool(failed) or driver.end() not in (0, None)


def main(program, tests):
    """Runs functions test_… on a program in the folder that the command line names."""
    driver = Driver(os.path.abspath(os.path.join(sys.argv[1], program)))
    sys.exit(run_tests({n: f for n, f in tests.items() if n.startswith("test_")}, driver))


# ---- test_trace: each call is about a file in its folder ----------------------------------------


def put(data, name="input"):
    with open(os.path.join(Driver.folder, name), "wb") as file:
        file.write(data)


def got(name="input"):
    with open(os.path.join(Driver.folder, name), "rb") as file:
        return file.read()


def said(driver, *words):
    """What was read, or the error."""
    result, fields, before = driver.ask(*(w for w in words if w))
    if not result:
        return "\n".join(map("\t".join, before))
    status = "" if fields[0] == "3" else f"exit {fields[0]}, "
    return f"{status}at {fields[1]}: " + "\t".join(fields[2:])


def program():
    return os.path.abspath(os.path.join(sys.argv[1], "../../cufrag"))


def cufrag(*words):
    """Runs it in the folder of the driver."""
    ran = subprocess.run([program(), *map(str, words)], cwd=Driver.folder, capture_output=True,
                         text=True, check=False)
    assert ran.returncode == 0, (words, ran.stderr)


def well(text):
    """It was no error."""
    assert not re.match(r"(exit \d+, )?at \d+:", text), text
    return text


COLUMNS = "action,id,size,stream,time_us,pool"


def made(seed, count, streams=3, pools=2, most=4000, large=24, odd=6):
    """Rows of a log: requests and frees, and so many of a thousand are others."""
    rng, live, waiting, rows, time = random.Random(seed), [], [], [], 0
    while len(rows) < count:
        time += rng.randrange(20) if rng.randrange(100) else rng.randrange(1 << 20)
        what = rng.randrange(1000)
        if what < odd:  # the allocator synchronizes
            rows += [f"free_completed,{block}" for block in waiting]
            live = [b for b in live if b not in waiting]
            waiting = []
            rows.append(f"trim,0,0,0,{time},{rng.randrange(pools)}" if rng.randrange(3) else
                        f"refused,0,{1 + rng.randrange(1 << 46)},{rng.randrange(streams)},{time},0")
        elif not live or what < 500 and len(live) < most:
            size, pool = 1 + rng.randrange(1 << rng.randrange(1, large)), rng.randrange(20) == 0
            live.append(f"{len(rows) + 1},{size},{rng.randrange(streams)},{time},{pool and pools - 1:d}")
            rows.append("alloc," + live[-1])
        else:
            at = -1 - rng.randrange(min(len(live), 8 if rng.randrange(10) else len(live)))
            kind = "_requested" if rng.randrange(5) == 0 else ""
            kind = "_completed" if live[at] in waiting else kind
            number, size, stream, _, pool = live[at].split(",")
            rows.append(f"free{kind},{number},{size},{stream},{time},{pool}")
            if kind == "_requested":
                waiting.append(live[at])
            else:
                waiting = [b for b in waiting if b != live[at]]
                del live[at]
    return rows[:count]


def read_rows(driver, rows):
    put("\n".join([COLUMNS, *rows, ""]).encode())
    return well(said(driver, "read"))


def trace_main(tests, files):
    """Runs functions test_…, and {path: how} of files of cases."""
    with tempfile.TemporaryDirectory() as Driver.folder:
        put(b"")
        found = {}
        for path, how in files.items():
            found.update(cases(path, how))
        main("test_trace", {**found, **tests})
