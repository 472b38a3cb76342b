#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""numbers.py [--spoiled] DOCUMENT...: every number in a conclusion ("answers") or in the title of a chart is a number of
the JSON beside it, as it is printed: "9.65 GiB" a field *_bytes, "33 %" a ratio, "45.2 ms" a time, "12" any number or the
length of a list. --spoiled: with the numbers of the document changed, so that each sentence with a number must be found."""
import json
import re
import sys

NUMBER = re.compile(r"(?<![\w.#:/-])([-+]?\d[\d,]*(?:\.\d+)?)(?: ?(KiB|MiB|GiB|TiB|B|%|ns|us|ms|s|min|h)\b| ?(%))?")
BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}


def walk(value, key, numbers, names):
    """Numbers with their keys, and texts that may stand in a sentence."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, (int, float)):
        numbers.append((key, value))
    elif isinstance(value, str):
        names.add(value)
    elif isinstance(value, list):
        numbers.append((key + "_count", len(value)))
        for one in value:
            walk(one, key, numbers, names)
    else:
        for name, one in value.items():
            walk(one, name, numbers, names)


def in_unit(key, value, unit):
    """The values that a field may have in this unit."""
    if unit in BYTES:
        return [value / BYTES[unit]] if re.search(r"(^|_)bytes(_|$)", key) else []
    if unit == "%":
        if re.search(r"(^|_)(ratio|share)(_|$)", key):
            return [100 * value]
        return [value] if re.search(r"(^|_)percent(_|$)", key) else []
    if unit in NS:
        of = re.search(r"(?:^|_)(ns|us|ms|s|min|h)(?:_|$)", key)
        return [value * NS[of[1]] / NS[unit]] if of else []
    return [value]


def is_there(text, unit, numbers):
    wanted = abs(float(text.replace(",", "")))
    digits = len(text.partition(".")[2])
    near = 0.5 * 10**-digits * 1.000001
    return any(abs(abs(v) - wanted) <= near for key, value in numbers for v in in_unit(key, value, unit))


def complaints(sentence, numbers, names):
    rest = sentence
    for name in sorted(names, key=len, reverse=True):
        if re.search("[A-Za-z]", name) and len(name) < max(len(sentence) * 0.7, 20):
            rest = rest.replace(name, "'")
    rest = re.sub(r"'[^' ]*'", "'", rest)
    for found in NUMBER.finditer(rest):
        unit = found[2] or found[3]
        if not is_there(found[1], unit, numbers):
            yield "'%s' of '%s' is no number of the document" % (found[0], sentence)


def sentences(document):
    return list(document["answers"]) + [chart["title"] for chart in document["charts"]]


def check(path, spoiled):
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    numbers, names = [], set()
    for key, value in document.items():
        if key == "charts":
            value = [chart["numbers"] for chart in value]
        if key not in ("answers", "schema", "version"):
            walk(value, key, numbers, names)
    if not spoiled:
        return ["%s: %s" % (path, c) for s in sentences(document) for c in complaints(s, numbers, names)]
    numbers = [(key, value * 3.7 + 11.3) for key, value in numbers]
    with_numbers = [s for s in sentences(document) if list(complaints(s, [], names))]
    return ["%s: spoiled numbers, and none of '%s' is missed" % (path, s)
            for s in with_numbers if not list(complaints(s, numbers, names))]


if __name__ == "__main__":
    paths = [a for a in sys.argv[1:] if a != "--spoiled"]
    wrong = [c for path in paths for c in check(path, "--spoiled" in sys.argv)]
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))
