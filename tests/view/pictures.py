#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/understand.md: pictures.py PROGRAM FOLDER NAME=TRACE...

NAME-time.png, NAME-map.png and NAME-flame.png of each recording, as headless Chromium shows them; of the first, NAME-difference.png,
too: a quarter of the way to the peak beside the peak.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402

VIEW = "document.getElementById('live').view"


def main():
    program, folder = sys.argv[1:3]
    browser = Browser(900, 1500)
    with tempfile.TemporaryDirectory() as scratch:
        for name, trace in (a.split("=", 1) for a in sys.argv[3:]):
            html = os.path.join(scratch, name + ".html")
            subprocess.run([program, "view", trace, "--out", html, "-q"], check=True, stdout=subprocess.DEVNULL)
            print(f"{name}: {os.path.getsize(html):,} bytes, open after {browser.open('file://' + html):.2f} s")
            browser.run("new Promise(done => setTimeout(done, 1500))")
            parts = [("time", 0), ("map", 1), ("flame", 2)]
            if name == sys.argv[3].split("=")[0]:
                parts.append(("difference", 2))
            for part, i in parts:
                if part == "difference":
                    browser.run(f"(() => {{ const v = {VIEW}; v.ui.mark = v.head.lanes[0].peak_event >> 2; v.ui.other = 'mark'; v.redraw(); return new Promise(done => setTimeout(done, 1500)); }})()")
                box = browser.run(f"(() => {{ const b = document.querySelectorAll('#live .panel:has(canvas)')[{i}].getBoundingClientRect(); return [b.left, b.top + scrollY, b.width, b.height]; }})()")
                browser.picture(os.path.join(folder, f"{name}-{part}.png"), dict(zip(("x", "y", "width", "height"), box)))
    browser.close()


main()
