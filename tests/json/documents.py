#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""documents.py FOLDER/answer.json...: the JSON of a command; beside it its schema, schema.json: as
much of JSON schema as `cufrag help COMMAND --format schema` writes. There, and in
FOLDER/page/**/results.json, every number in a conclusion ("answers") or in the title of a chart is
a number of the JSON beside it, as it is printed: "9.65 GiB" a field *_bytes, "33 %" a ratio, "45.2
ms" a time, "12" any number or the length of a list; and with other numbers in the document, each
sentence that has one must be found. Prints the folders in which that is not so, with what is wrong.
The status is how many they are."""
import json
import pathlib
import re
import sys

TYPES = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}
KNOWN = {"$schema", "title", "description", "type", "properties", "required", "additionalProperties", "items"}


def complaints(schema, value, path):
    """Where the value is not as the schema says, one text each."""
    for key in schema.keys() - KNOWN:
        yield f"{path}: documents.py does not know '{key}'"
    types = schema.get("type", list(TYPES))
    types = types if isinstance(types, list) else [types]
    if not any(TYPES[t](value) for t in types):
        yield f"{path}: {json.dumps(value)[:60]} is not {' or '.join(types)}"
        return
    if isinstance(value, list):
        for i, v in enumerate(value):
            yield from complaints(schema.get("items", {}), v, f"{path}[{i}]")
    if not isinstance(value, dict):
        return
    known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    for key in schema.get("required", []):
        if key not in value:
            yield f"{path}: lacks '{key}'"
    for key, v in value.items():
        if key in known:
            yield from complaints(known[key], v, f"{path}.{key}")
        elif other is False:
            yield f"{path}: '{key}' is in no table"
        elif isinstance(other, dict):
            yield from complaints(other, v, f"{path}.{key}")


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


def unfounded(sentence, numbers, names):
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


def numbers_of(document, spoiled):
    numbers, names = [], set()
    for key, value in document.items():
        if key == "charts":
            value = [chart["numbers"] for chart in value]
        if key not in ("answers", "schema", "version"):
            walk(value, key, numbers, names)
    if not spoiled:
        return [c for s in sentences(document) for c in unfounded(s, numbers, names)]
    numbers = [(key, value * 3.7 + 11.3) for key, value in numbers]
    with_numbers = [s for s in sentences(document) if list(unfounded(s, [], names))]
    return ["spoiled numbers, and none of '%s' is missed" % s
            for s in with_numbers if not list(unfounded(s, numbers, names))]


def wrong_in(folder):
    schema = json.loads((folder / "schema.json").read_text())
    yield from complaints(schema, json.loads((folder / "answer.json").read_text()), "$")
    for path in [folder / "answer.json", *folder.glob("page/**/results.json")]:
        document = json.loads(path.read_text(encoding="utf-8"))
        for text in numbers_of(document, False) + numbers_of(document, True):
            yield f"{path}: {text}"


def main():
    bad = 0
    for folder in (pathlib.Path(answer).parent for answer in sys.argv[1:]):
        wrong = list(wrong_in(folder))
        bad += bool(wrong)
        print(*([f"FAILED: {folder}"] + wrong[:20] if wrong else []), sep="\n", end="\n" if wrong else "")
    return bad


if __name__ == "__main__":
    sys.exit(main())
