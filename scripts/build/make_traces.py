#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bundled traces from the recordings in a folder, and the tables of traces/README.md from what
came out: make_traces.py RECORDINGS [CUFRAG]. The same recordings give the same bytes."""
import hashlib
import json
import shlex
import subprocess
import sys

# and what a recording does not say: the limit that was set
TRACES = """cudagraph.default gnn.default gnn.expandable gnn.late leak.frames mempool.default
modelpar.default oomcap.default=7.5 seeddemo.default serve.default streams.default varlen.default
vision.default"""
HEAD = "trace settings limit devices allocs events ooms steps 'peak live, MiB' bytes"
recordings, cufrag = (sys.argv[1:] + ["build/release/cufrag"])[:2]
rows, sums = [shlex.split(HEAD), ["---"] * 10], []
for name, _, limit in (word.partition("=") for word in TRACES.split()):
    path = f"traces/{name}.cft"
    subprocess.run([cufrag, "import", f"{recordings}/{name}.pickle.xz", "--gpu", "h200", "-o", path,
                    *(["--limit", limit + "G"] if limit else [])], check=True)
    info = json.loads(subprocess.check_output([cufrag, "info", path, "--json", "-"]))
    devices = info["devices"]
    with open(path, "rb") as f:
        data = f.read()
    rows.append([name, f"`{info['settings']['conf'] or 'default'}`",
                 limit + " GiB" if limit else "-", len(devices),
                 *(sum(d[k + "_count"] for d in devices)
                   for k in ("allocs", "events", "refused", "steps")),
                 " + ".join(f"{d['peak']['live_bytes'] / 2**20:.0f}" for d in devices), len(data)])
    sums.append(f"{hashlib.sha256(data).hexdigest()}  {name}.cft")
table = [("| %s |" % " | ".join(map(str, row))).replace(" --- ", "---") for row in rows]
with open("traces/README.md", encoding="utf-8") as f:
    page = f.read()
for mark, lines in (("table", table), ("sums", ["```", *sums, "```"])):
    before, _, rest = page.partition(f"<!-- {mark} -->\n")
    after = rest[rest.index("<!-- end -->"):]
    page = before + "\n".join([f"<!-- {mark} -->", *lines, after])
with open("traces/README.md", "w", encoding="utf-8") as f:
    f.write(page)
