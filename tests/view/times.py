#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times and sizes of pages: times.py PROGRAM NAME=TRACE...

A row of results/performance/view.md for each recording: as one file, or served where it has more than 20 million events. Write: the
whole process. Open: from the address until the page says that it is drawn. Frames: 240 steps of a zoom from the whole run to
single events and back; cursor: 240 steps of the cursor over the run, with map. Moment: blocks and segments at 30 moments all over
the run. Memory: that of the page and its worker.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402

VIEW = "document.getElementById('live').view"
FRAMES = f"""(async () => {{ const v = {VIEW}, l = v.head.lanes[0], times = []; v.ui.x0 = 0; v.ui.x1 = l.events_count; v.ui.pinned = true;
    let last = performance.now();
    for (let i = 0; i < 240; i++) {{ v.zoom(i < 120 ? 0.9 : 1 / 0.9, l.peak_event); await new Promise(requestAnimationFrame); const n = performance.now(); times.push(n - last); last = n; }}
    times.sort((a, b) => a - b); return [times[120], times[228]]; }})()"""
CURSOR = f"""(async () => {{ const v = {VIEW}, l = v.head.lanes[0], times = []; v.ui.x0 = 0; v.ui.x1 = l.events_count; v.ui.pinned = false;
    let last = performance.now();
    for (let i = 0; i < 240; i++) {{ v.ui.at = Math.floor(l.events_count * (i + 0.5) / 240); v.redraw(); await new Promise(requestAnimationFrame); const n = performance.now(); times.push(n - last); last = n; }}
    times.sort((a, b) => a - b); return [times[120], times[228]]; }})()"""
MOMENTS = f"""(async () => {{ const v = {VIEW}, l = v.head.lanes[0], out = [];
    for (let i = 0; i < 30; i++) {{ const a = performance.now(); await v.stateAt(l, Math.floor(l.events_count * (i + 0.5) / 30)); out.push(performance.now() - a); }}
    return out.sort((a, b) => a - b)[15]; }})()"""


def measure(program, name, trace, browser, scratch):
    html, begin, server = os.path.join(scratch, "page.html"), time.time(), None
    if os.path.getsize(trace) < 20 << 20:
        subprocess.run([program, "view", trace, "--out", html, "-q"], check=True, stdout=subprocess.DEVNULL)
        size, url = f"{os.path.getsize(html) / 1e6:.2f} MB", "file://" + html
    else:
        server = subprocess.Popen([program, "view", trace, "-q"], stdout=subprocess.PIPE, text=True)
        size, url = "served", re.search(r"http\S+", server.stdout.readline())[0]
    wrote = time.time() - begin
    opened = browser.open(url)
    while not browser.run(f"{VIEW}.state && {VIEW}.flame && 1"):
        time.sleep(0.02)
    count = browser.run(f"{VIEW}.head.lanes[0].events_count")
    frames, cursor, moment = browser.run(FRAMES), browser.run(CURSOR), browser.run(MOMENTS)
    heap = browser.heap()
    print(f"| {name} | {count:,} | {os.path.getsize(trace) / 1e6:.2f} MB | {wrote:.1f} s | {size} | {opened:.2f} s | {frames[0]:.1f} ms | {frames[1]:.1f} ms | {cursor[0]:.1f} ms | {cursor[1]:.1f} ms | {moment:.0f} ms | {heap:.0f} MiB |")
    if server:
        server.send_signal(signal.SIGINT)
        server.wait(20)


def main():
    browser = Browser(1280, 1600)
    with tempfile.TemporaryDirectory() as scratch:
        for name, trace in (a.split("=", 1) for a in sys.argv[2:]):
            measure(sys.argv[1], name, trace, browser, scratch)
    browser.close()


main()
