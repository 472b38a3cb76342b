#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bundled traces from the recordings in a folder, and the tables of traces/README.md from what
came out: make_traces.py RECORDINGS [CUFRAG]. The same recordings give the same bytes."""
import hashlib
import json
import re
import subprocess
import sys

# and what a recording does not say: the limit that was set
TRACES = """cudagraph.default gnn.default gnn.expandable gnn.late leak.frames mempool.default modelpar.default
oomcap.default=7.5 seeddemo.default serve.default streams.default varlen.default vision.default"""
recordings, cufrag = (sys.argv[1:] + ["build/release/cufrag"])[:2]
table = ["| trace | settings | limit | devices | allocs | events | ooms | steps | peak live, MiB | bytes |", "|---" * 10 + "|"]
sums = []
for name, _, limit in (word.partition("=") for word in TRACES.split()):
    path = f"traces/{name}.cft"
    subprocess.run([cufrag, "import", f"{recordings}/{name}.pickle.xz", *(["--limit", limit + "G"] if limit else []),
                    "--gpu", "h200", "-o", path], check=True)
    info = json.loads(subprocess.run([cufrag, "info", path, "--json", "-"], capture_output=True, check=True).stdout)
    devices = info["devices"]
    counts = [sum(d[k + "_count"] for d in devices) for k in ("allocs", "events", "refused", "steps")]
    with open(path, "rb") as f:
        data = f.read()
    row = (name, f"`{info['settings']['conf'] or 'default'}`", limit + " GiB" if limit else "-", len(devices), *counts,
           " + ".join(f"{d['peak']['live_bytes'] / 2**20:.0f}" for d in devices), len(data))
    table.append("| " + " | ".join(map(str, row)) + " |")
    sums.append(f"{hashlib.sha256(data).hexdigest()}  {name}.cft")
with open("traces/README.md", encoding="utf-8") as f:
    page = f.read()
for mark, lines in (("table", table), ("sums", ["```", *sums, "```"])):
    page = re.sub(f"(<!-- {mark} -->\n).*?(<!-- end -->)", lambda m, t="\n".join(lines): f"{m[1]}{t}\n{m[2]}", page, flags=re.S)
with open("traces/README.md", "w", encoding="utf-8") as f:
    f.write(page)
