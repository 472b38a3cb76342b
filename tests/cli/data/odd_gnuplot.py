#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gnuplot in a path of its own: draws what it is asked for, and again from the first row of its
table alone, and without its numbers; $ODD_CHARTS gets a line for each that fails."""
import csv
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(sys.argv[0]))
REAL = shutil.which("gnuplot", path=os.environ["PATH"].replace(HERE + os.pathsep, ""))
PLACES = r"rank|card_no|panel|site|x|y|completed|low|high|.*count"  # never empty

args = sys.argv[1:]
status = subprocess.run([REAL, *args], check=False).returncode
with open(args[3], newline="", encoding="utf-8") as file:
    head, *rows = list(csv.reader(file))
kept = [not i or bool(re.fullmatch(PLACES, name)) for i, name in enumerate(head)]
empty = [["" if re.fullmatch(r"-?[\d.e+-]+", v) and not k else v for v, k in zip(row, kept)]
         for row in rows]
for what, some in {"one": rows[:1], "nan": empty}.items():
    with open(f"odd{os.getpid()}.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *some])
    ran = subprocess.run([REAL, *args[:3], f"odd{os.getpid()}.csv", "odd.out", *args[5:]], check=False,
                         stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ran.returncode:
        with open(os.environ["ODD_CHARTS"], "a", encoding="utf-8") as log:
            print(os.path.basename(args[2]), what, ran.returncode, ran.stderr[-99:], file=log)
sys.exit(status)
