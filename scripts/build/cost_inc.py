#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the built-in cost profiles out of profile files, for make; the folder names the card:
cost_inc.py results/h100/profile.csv results/h200/profile.csv > build/release/gen/cost_list.inc"""
import re
import sys

SYMBOL = {}  # by the text that stands beside it in the headers that list calls and parts
for header, prefix in (("src/include/frag/device.h", "CALL"), ("src/device/sim/cost.h", "COST")):
    with open(header, encoding="utf-8") as f:
        SYMBOL.update((text, f"FRAG_{prefix}_{name}")
                      for name, text in re.findall(r'X\(([A-Z_]+), "([^"]+)"', f.read()))

print("/* The built-in profiles: bytes, ns, ns per byte up to the next point. docs/measuring.md */")
profiles = ""
for path in sys.argv[1:]:
    card, curves = path.split("/")[-2], {}
    with open(path, encoding="utf-8") as f:
        for call, size, ns in (row.strip().split(",") for row in f if row[0] not in "#\n"):
            if call != "call":
                curves.setdefault(call, []).append((int(size), int(ns)))
    profiles += f'\t{{ "{card}", {{ .curves = {{\n'
    for n, (call, points) in enumerate(curves.items(), 1):
        print(f"static const struct frag_cost_point {card}_{n}[] = {{ /* {call} */")
        for i, (size, ns) in enumerate(points):
            (a, low), (b, high), *_ = points[min(i, len(points) - 2):] + points  # the last goes on
            slope = (high - low) / (b - a) if b != a else 0
            print(f"\t{{ {size}, {ns}, {slope:.17g} }},")
        print("};")
        profiles += f"\t\t[{SYMBOL[call]}] = {{ {len(points)}, {card}_{n} }},\n"
    profiles += "\t} } },\n"
print("static const struct {\n\tconst char *card;\n\tstruct frag_cost cost;\n} built_in[] = {")
print(profiles + "};")
