#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/view.md: pictures.py PROGRAM FOLDER NAME=TRACE...

NAME-time.png, NAME-map.png and NAME-flame.png of each recording, as headless Chromium shows them.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402


def main():
    program, folder = sys.argv[1:3]
    browser = Browser(900, 1500)
    with tempfile.TemporaryDirectory() as scratch:
        for name, trace in (a.split("=", 1) for a in sys.argv[3:]):
            html = os.path.join(scratch, name + ".html")
            subprocess.run([program, "view", trace, "--out", html, "-q"], check=True, stdout=subprocess.DEVNULL)
            print(f"{name}: {os.path.getsize(html):,} bytes, open after {browser.open('file://' + html):.2f} s")
            browser.run("new Promise(done => setTimeout(done, 1500))")
            for i, part in enumerate(("time", "map", "flame")):
                box = browser.run(f"(() => {{ const b = document.querySelectorAll('#live .panel:has(canvas)')[{i}].getBoundingClientRect(); return [b.left, b.top + scrollY, b.width, b.height]; }})()")
                browser.picture(os.path.join(folder, f"{name}-{part}.png"), dict(zip(("x", "y", "width", "height"), box)))
    browser.close()


main()
