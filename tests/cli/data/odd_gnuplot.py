#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gnuplot in a path of its own: draws what it is asked for, and again with the first row of its table alone, and with
no number but places and truths; $ODD_CHARTS gets a line for each that fails."""
import csv
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(sys.argv[0]))
REAL = shutil.which("gnuplot", path=os.environ["PATH"].replace(HERE + os.pathsep, ""))


PLACES = ("rank", "card_no", "panel", "site", "x", "y", "completed", "low", "high")  # never empty


def number(text):
    try:
        return bool(float(text) + 1)
    except ValueError:
        return False


def main(args):
    status = subprocess.run([REAL, *args], check=False).returncode
    with open(args[3], newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    keys = [not i or name in PLACES or name.endswith("count") for i, name in enumerate(head)]
    odd = {"one": rows[:1],
           "nan": [["" if number(v) and not k else v for v, k in zip(row, keys)] for row in rows]}
    with tempfile.TemporaryDirectory() as folder:
        for what, some in odd.items():
            path = os.path.join(folder, "x.csv")
            with open(path, "w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows([head, *some])
            ran = subprocess.run([REAL, *args[:3], path, os.path.join(folder, "out"), *args[5:]], check=False,
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if ran.returncode:
                with open(os.environ["ODD_CHARTS"], "a", encoding="utf-8") as log:
                    print(os.path.basename(args[2]), what, ran.returncode,
                          *(ran.stderr.strip().splitlines() or [""])[-1:], file=log)
    return status


sys.exit(main(sys.argv[1:]))
