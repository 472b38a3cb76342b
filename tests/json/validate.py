#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""validate.py SCHEMA DOCUMENT: as much of JSON schema as `cufrag help COMMAND --format schema` writes."""
import json
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
        yield f"{path}: validate.py does not know '{key}'"
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


def main():
    with open(sys.argv[1]) as a, open(sys.argv[2]) as b:
        found = list(complaints(json.load(a), json.load(b), "$"))
    for text in found[:20]:
        print(text)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
